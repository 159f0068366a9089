// Throughput, speedup and efficiency over the number of devices, and the choice of lines.

// [{curve, published, name, style, shown}]: own curves first, each in front of its prediction.
function makeSeries(data) {
  const own = data.curves.flatMap((curve, i) => {
    const series = {curve, published: false, shown: true, style: {color: i, marker: i}};
    if (!curve.predicted) return [series];
    const predicted = {label: `${curve.label}, predicted`, points: curve.predicted};
    return [series, {...series, curve: predicted, predicted: true, style: {...series.style, dash: 0}}];
  });
  const published = data.published.map((curve, i) => ({
                                         curve,
                                         published: true,
                                         shown: true,
                                         style: {color: data.curves.length + i, marker: data.curves.length + i, dash: i},
                                       }));
  return [...own, ...published];
}

function lineOf(series) {
  const line = seriesColor(series.style.color);
  const measured = !series.published && !series.predicted;
  return {
    borderColor: line,
    backgroundColor: series.predicted ? color('card') : line,  // hollow
    borderWidth: measured ? 2.5 : 1.5,
    borderDash: measured ? [] : kDashes[series.style.dash % kDashes.length],
    pointStyle: kMarkers[series.style.marker % kMarkers.length],
    pointRadius: measured ? 5 : 4,
    pointHoverRadius: 7,
    tension: 0,
  };
}

const idealLine = (label, points) => ({
  label,
  data: points,
  borderColor: color('soft'),
  backgroundColor: color('soft'),
  borderWidth: 1,
  borderDash: [1, 4],
  pointStyle: 'line',
  pointRadius: 0,
  pointHitRadius: 0,
});

// 1, 2, 4, …, which is how devices come.
function devicesAxis(series) {
  const devices = series.flatMap(({curve}) => curve.points.map((point) => point.devices));
  const most = Math.max(...devices, 2);
  const ticks = [];
  for (let value = 1; value < 2 * most; value *= 2) ticks.push({value});
  return axis('devices', {
    type: 'logarithmic',
    min: 0.9,
    max: most * 1.12,
    afterBuildTicks: (scale) => {
      scale.ticks = ticks.filter(({value}) => value <= scale.max);
    },
    ticks: {callback: count, autoSkip: false},
  });
}

function logAxis(title, values, text) {
  const kept = values.filter((value) => isNumber(value) && value > 0);
  const low = Math.min(...kept), high = Math.max(...kept);
  // Ticks at 1, 2 and 5 while they are few, at powers of ten where the axis is long.
  const steps = high / low > 1e4 ? [1] : [1, 2, 5];
  return axis(title, {
    type: 'logarithmic',
    min: low / 1.25,
    max: high * 1.25,
    afterBuildTicks: (scale) => {
      scale.ticks = [];
      for (let power = 10 ** Math.floor(Math.log10(scale.min)); power <= scale.max; power *= 10)
        for (const step of steps)
          if (step * power >= scale.min && step * power <= scale.max) scale.ticks.push({value: step * power});
    },
    ticks: {callback: text, autoSkip: false},
  });
}

// What one figure shows of a point.
const kMeasures = {
  throughput: {value: (point) => point.median, title: 'images/s', text: plain},
  speedup: {value: (point) => point.speedup, title: 'speedup', text: (value) => plain(value, 3)},
  efficiency: {value: (point) => point.efficiency, title: 'efficiency', text: percent},
};

function scalingDataset(series, measure) {
  const points = series.curve.points.filter((point) => isNumber(measure.value(point)));
  const dataset = {
    label: series.curve.label,
    data: points.map((point) => ({
                       x: point.devices,
                       y: measure.value(point),
                       case: point.case,
                       source: point.source ?? series.curve.source
                     })),
    ...lineOf(series),
  };
  if (measure === kMeasures.throughput && !series.published)
    dataset.intervals = points.map(({interval}) => (interval ? [interval.low, interval.high] : null));
  return dataset;
}

function idealOf(id, series) {
  const most = Math.max(...series.flatMap(({curve}) => curve.points.map((point) => point.devices)), 1);
  if (id === 'efficiency') return idealLine('ideal', [{x: 0.9, y: 1}, {x: most * 1.12, y: 1}]);
  if (id === 'speedup') return idealLine('ideal', [{x: 1, y: 1}, {x: most, y: most}]);
  const first = series.find(({published, curve}) => !published && curve.points[0]?.devices === 1);
  if (!first) return null;
  const one = first.curve.points[0].median;
  return idealLine(
      `ideal from one device of ${first.curve.label}`, [{x: 1, y: one}, {x: most, y: one * most}]);
}

function scalingTable(id, series, measure) {
  const rows = series.flatMap(
      ({curve}) => curve.points.filter((point) => isNumber(measure.value(point))).map((point) => {
        const row = [curve.label, point.case, point.devices, measure.value(point)];
        return id === 'throughput' ? [...row, point.interval?.low ?? null, point.interval?.high ?? null] :
                                     row;
      }));
  const value = {
    name: id[0].toUpperCase() + id.slice(1),
    unit: id === 'throughput' ? 'images/s' : '',
    text: measure.text
  };
  const columns = [{name: 'Line'}, {name: 'Case'}, {name: 'Devices', text: count}, value];
  if (id === 'throughput') columns.push({...value, name: 'Interval from'}, {...value, name: 'Interval to'});
  return {caption: `${value.name} by number of devices`, columns, rows};
}

function scalingFigure(id, allSeries) {
  const measure = kMeasures[id];
  const series = allSeries.filter((one) => one.shown);
  const datasets = series.map((one) => scalingDataset(one, measure)).filter((dataset) => dataset.data.length);
  const ownHas = allSeries.some(
      (one) => !one.published && one.curve.points.some((point) => isNumber(measure.value(point))));
  if (!datasets.length || (!ownHas && id !== 'throughput')) return null;
  const values =
      datasets.flatMap((dataset) => [...dataset.data.map(({y}) => y), ...(dataset.intervals ?? []).flat()]);
  const ideal = idealOf(id, series);
  if (ideal) datasets.push(ideal);
  const most = Math.max(...series.flatMap(({curve}) => curve.points.map((point) => point.devices)));
  const y = id === 'efficiency' ?
      axis(
          measure.title,
          {beginAtZero: true, suggestedMax: 1.05, ticks: {callback: (value) => percent(value, 0)}}) :
      logAxis(measure.title, id === 'speedup' ? [1, most, ...values] : values, (value) => plain(value, 1));
  const label = ({dataset, raw}) => [`${dataset.label}: ${raw.case ?? ''} ${measure.text(raw.y)} ${
                                         id === 'throughput' ? 'images/s' : ''}`,
                                     raw.source]
                                        .filter(Boolean);
  return {
    label: `Lines of ${id} over the number of devices: ${series.map(({curve}) => curve.label).join('; ')}.`,
    table: scalingTable(id, series, measure),
    config: chartConfig(
        'line', {datasets}, {x: devicesAxis(series), y},
        {title: ([item]) => plural(item.raw.x, 'device'), label},
        {interaction: {mode: 'nearest', intersect: false}}),
  };
}

const showScaling = (series) =>
    Object.keys(kMeasures).forEach((id) => showFigure(id, scalingFigure(id, series)));

// The line's marker, in its color.
const swatch = ({style: {color: place, marker}}) => element('span', {
  'aria-hidden': 'true',
  class: 'sign',
  'data-sign': kSigns[marker % kSigns.length],
  style: `color: var(--series-${place % kSeries})`
});

function choiceOf(series, changed) {
  const box = element('input', {type: 'checkbox'});
  box.checked = series.shown;
  box.addEventListener('change', () => {
    series.shown = box.checked;
    changed();
  });
  const {curve} = series;
  const about = [curve.differences, ...(curve.notes ?? []), curve.source].filter(Boolean).join(' · ');
  const label =
      element('label', about ? {title: about} : {}, box, swatch(series), element('span', {}, curve.label));
  const differs = series.published && curve.differences ? ` differs: ${curve.differences}` : '';
  return element('li', {}, label, differs ? element('span', {class: 'differs'}, differs) : null);
}

const setUpSeries = (allSeries, changed) =>
    byId('series-shown').replaceChildren(...allSeries.map((series) => choiceOf(series, changed)));
