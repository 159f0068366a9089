// Figures: a chart, its numbers below it, and what stands there if it has none.

const kSeries = 8;
const kMarkers = ['circle', 'rect', 'triangle', 'rectRot', 'crossRot', 'star', 'rectRounded', 'cross'];
// Likewise, as text.
const kSigns = ['●', '■', '▲', '◆', '✕', '✳', '▣', '✚'];

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const seriesColor = (index) => color(`series-${index % kSeries}`);

function setDefaults() {
  const {font, plugins: {legend, tooltip}} = Chart.defaults;
  Object.assign(Chart.defaults, {
    animation: false,
    maintainAspectRatio: false,
    color: color('soft'),
    borderColor: color('grid'),
    backgroundColor: color('shade'),
  });
  Object.assign(font, {family: getComputedStyle(document.body).fontFamily, size: 12});
  Object.assign(legend, {position: 'top', align: 'start'});
  Object.assign(legend.labels, {usePointStyle: true, boxHeight: 7});
  tooltip.boxPadding = 4;
}
setDefaults();

const charts = {};  // by the canvas's name without "chart-"

const axis = (title, more = {}) => ({title: {display: true, text: title}, ...more});

// Puts an axis' ticks at these values, as far as it reaches them, and nowhere else.
const ticksAt = (values) => ({
  afterBuildTicks(scale) {
    scale.ticks = values.filter((value) => value >= scale.min && value <= scale.max).map((value) => ({value}));
  }
});

// Draws `made` = {config, table, label, bars} into the figure `id`. With nothing made the figure says what would
// give it (data-absent), or is hidden if it has nothing to say. `bars`: how many lie on top of each other.
function showFigure(id, made) {
  const figure = byId(id);
  charts[id]?.destroy();
  delete charts[id];
  for (const part of figure.querySelectorAll('.canvas, .below, .missing')) part.remove();
  const absent = figure.dataset.absent;
  figure.hidden = !made && !absent;
  figure.classList.toggle('absent', !made && Boolean(absent));
  if (!made) return absent && figure.append(element('p', {class: 'missing'}, absent));
  const label = `${made.label} The numbers are in the table below.`;
  const canvas = element('canvas', {role: 'img', 'aria-label': label});
  const height = made.bars ? {style: `height: ${Math.max(18, 4 * made.bars + 5.5)}rem`} : {};
  figure.append(element('div', {class: 'canvas', ...height}, canvas));
  charts[id] = new Chart(canvas, made.config);
  figure.append(numbersBelow(made.table, `${id}.csv`));
}

// `tooltip`: {title, label} of an item; `more`: options of Chart.js, the legend's apart.
const chartConfig = (type, data, scales, tooltip, {
  legend = {
    display: false
  },
  ...more
} = {}) =>
    ({type, data, options: {scales, plugins: {legend, tooltip: {callbacks: tooltip}}, ...more}});

// A line for every two parts of a label.
const barTicks = {
  autoSkip: false,
  callback(index) { return this.getLabelForValue(index).match(/[^,]+(, [^,]+)?,? ?/g); }
};

// Bars that lie on top of each other, named by `labels`. `stacked`: the datasets end to end; `legend`: there
// is one.
function barsConfig(labels, datasets, title, tooltip, {stacked, legend, ticks = barTicks} = {}) {
  const both = stacked ? {stacked} : {};
  return chartConfig(
      'bar', {labels, datasets},
      {x: axis(title, {...both, beginAtZero: true}), y: {...both, grid: {display: false}, ticks}}, tooltip,
      {indexAxis: 'y', ...(legend && {legend: {labels: {pointStyle: 'rect'}}})});
}

// The bars of one color.
const barsOf = (label, data, index, maxBarThickness) =>
    ({label, data, backgroundColor: seriesColor(index), maxBarThickness});
