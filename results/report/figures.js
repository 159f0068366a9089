// Figures: a chart, its numbers below it, and what stands there if it has none.

const charts = {};  // by the canvas's name without "chart-"

function setDefaults() {
  const {font, plugins: {legend, tooltip}} = Chart.defaults;
  Object.assign(Chart.defaults, {animation: false, maintainAspectRatio: false});
  Object.assign(font, {family: getComputedStyle(document.body).fontFamily, size: 12});
  Object.assign(legend, {position: 'top', align: 'start'});
  Object.assign(legend.labels, {usePointStyle: true, boxHeight: 7});
  tooltip.boxPadding = 4;
}

const axis = (title, more = {}) => ({title: {display: true, text: title}, ...more});

function figureIsAbsent(figure, sentence) {
  figure.classList.toggle('absent', Boolean(sentence));
  figure.hidden = sentence === '';
  figure.querySelector('.missing')?.remove();
  if (sentence) figure.append(element('p', {class: 'missing'}, sentence));
}

// Draws `made` = {config, table, label, bars} into the figure `id`, or takes the figure away: with nothing
// made it says what would give it (data-absent), or is hidden if it has nothing to say. `bars`: how many lie
// on top of each other.
function showFigure(id, made) {
  const figure = document.getElementById(id);
  charts[id]?.destroy();
  delete charts[id];
  figure.querySelector('.below')?.remove();
  if (!made) return figureIsAbsent(figure, figure.dataset.absent ?? '');
  figureIsAbsent(figure, null);
  const canvas = document.getElementById(`chart-${id}`);
  if (made.bars) canvas.parentElement.style.height = `${Math.max(18, 1.5 * made.bars + 5.5)}rem`;
  canvas.setAttribute('aria-label', `${made.label} The numbers are in the table below.`);
  charts[id] = new Chart(canvas, made.config);
  figure.append(numbersBelow(made.table, `${id}.csv`));
}

// `tooltip`: {title, label} of an item; `more`: options of Chart.js, the plugins' legend and ranges apart.
const chartConfig = (type, data, scales, tooltip, {
  legend = {
    display: false
  },
  ranges,
  ...more
} = {}) =>
    ({type, data, options: {scales, plugins: {legend, ranges, tooltip: {callbacks: tooltip}}, ...more}});

// The bars of one color.
const barsOf = (label, data, index, maxBarThickness) =>
    ({label, data, backgroundColor: seriesColor(index), maxBarThickness});
