// Throughput and efficiency over the number of devices, and the choice of lines.

// [{curve, index, shown, published, predicted}]: own curves first, each in front of its prediction. `index`: of
// color and marker.
function makeSeries(data) {
  const own = data.curves.flatMap((curve, index) => {
    const predicted = {label: `${curve.label}, predicted`, points: curve.predicted};
    const measured = {curve, index, shown: true};
    return curve.predicted ? [measured, {curve: predicted, index, shown: true, predicted: true}] : [measured];
  });
  const published =
      data.published.map((curve, i) => ({curve, index: data.curves.length + i, shown: true, published: true}));
  return [...own, ...published];
}

function lineOf({index, published, predicted}) {
  const line = seriesColor(index);
  const measured = !published && !predicted;
  return {
    borderColor: line,
    backgroundColor: predicted ? color('card') : line,  // hollow
    borderWidth: measured ? 2.5 : 1.5,
    borderDash: measured ? [] : [7, 4],
    pointStyle: kMarkers[index % kMarkers.length],
    pointRadius: measured ? 5 : 4,
    pointHoverRadius: 7,
    tension: 0,
  };
}

// 1, 2, 4, …, which is how devices come.
function devicesAxis(series) {
  const devices = series.flatMap(({curve}) => curve.points.map((point) => point.devices));
  return axis('devices', {
    type: 'logarithmic',
    min: 0.9,
    max: Math.max(...devices, 2) * 1.12,
    ticks: {callback: count, autoSkip: false},
    ...ticksAt(Array.from({length: 31}, (_, power) => 2 ** power)),
  });
}

function logAxis(title, values, text) {
  const kept = values.filter((value) => isNumber(value) && value > 0);
  const min = Math.min(...kept) / 1.25, max = Math.max(...kept) * 1.25;
  const ticks = [];
  for (let power = 10 ** Math.floor(Math.log10(min)); power <= max; power *= 10)
    ticks.push(power, 2 * power, 5 * power);
  return axis(title, {type: 'logarithmic', min, max, ticks: {callback: text, autoSkip: false}, ...ticksAt(ticks)});
}

// What one figure shows of a point.
const kMeasures = {
  throughput: {value: (point) => point.median, title: 'images/s', text: plain},
  efficiency: {value: (point) => point.efficiency, title: 'efficiency', text: percent},
};

function scalingDataset(series, measure) {
  const points = series.curve.points.filter((point) => isNumber(measure.value(point)));
  const dataset = {
    label: series.curve.label,
    data: points.map((point) => ({x: point.devices, y: measure.value(point), point})),
    ...lineOf(series),
  };
  if (measure === kMeasures.throughput && !series.published)
    dataset.intervals = points.map(({interval}) => (interval ? [interval.low, interval.high] : null));
  return dataset;
}

// As many times the throughput as devices.
function idealOf(series) {
  const first = series.find(({published, curve}) => !published && curve.points[0]?.devices === 1);
  if (!first) return null;
  const most = Math.max(...series.flatMap(({curve}) => curve.points.map((point) => point.devices)));
  const one = first.curve.points[0].median;
  return {
    label: `ideal from one device of ${first.curve.label}`,
    data: [{x: 1, y: one}, {x: most, y: one * most}],
    borderColor: color('soft'),
    borderWidth: 1,
    borderDash: [1, 4],
    pointRadius: 0,
    pointHitRadius: 0,
  };
}

function scalingTable(id, series, measure) {
  const name = id[0].toUpperCase() + id.slice(1);
  const figure = {unit: id === 'throughput' ? 'images/s' : '', text: measure.text};
  const interval = [
    {...figure, name: 'Interval from', value: ({point}) => point.interval?.low},
    {...figure, name: 'Interval to', value: ({point}) => point.interval?.high}
  ];
  const items = series.flatMap(({curve}) => curve.points.map((point) => ({curve, point})))
                    .filter(({point}) => isNumber(measure.value(point)));
  return tableOf(`${name} by number of devices`, items, [
    {name: 'Line', value: ({curve}) => curve.label}, {name: 'Case', value: ({point}) => point.case},
    {name: 'Devices', text: count, value: ({point}) => point.devices},
    {...figure, name, value: ({point}) => measure.value(point)}, ...(id === 'throughput' ? interval : [])
  ]);
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
  const ideal = id === 'throughput' ? idealOf(series) : null;
  if (ideal) datasets.push(ideal);
  const y = id === 'efficiency' ?
      axis(
          measure.title,
          {beginAtZero: true, suggestedMax: 1.05, ticks: {callback: (value) => percent(value, 0)}}) :
      logAxis(measure.title, values, (value) => plain(value, 1));
  const label = ({dataset, raw}) =>
      [`${dataset.label}: ${measure.text(raw.y)}`, raw.point?.source].filter(Boolean);
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
const swatch = ({index}) => element('span', {
  'aria-hidden': 'true',
  class: 'sign',
  'data-sign': kSigns[index % kSigns.length],
  style: `color: var(--series-${index % kSeries})`
});

function choiceOf(series, changed) {
  const box = element('input', {type: 'checkbox'});
  box.checked = series.shown;
  box.addEventListener('change', () => {
    series.shown = box.checked;
    changed();
  });
  const {label, differences} = series.curve;
  const differs = differences ? element('span', {class: 'differs'}, ` differs: ${differences}`) : null;
  return element('li', {}, element('label', {}, box, swatch(series), element('span', {}, label)), differs);
}

const setUpSeries = (allSeries, changed) =>
    byId('series-shown').replaceChildren(...allSeries.map((series) => choiceOf(series, changed)));
