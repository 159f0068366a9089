// One run: step times, ranks, GPU clocks.

const windowOf = ({steps}) => steps.median.slice(Math.floor(steps.warmup / steps.per_entry));

// Step times, or the medians of several with the range between shortest and longest.
function timelineDatasets(steps, factor) {
  const at = (i) => i * steps.per_entry + (steps.per_entry - 1) / 2;
  const points = (values) => values.map((value, i) => ({x: at(i), y: factor * value}));
  const line = seriesColor(0);
  const datasets = [{
    label: steps.per_entry > 1 ? 'median' : 'step',
    data: points(steps.median),
    borderColor: line,
    backgroundColor: line,
    borderWidth: 1.5,
    pointRadius: steps.median.length > 150 ? 0 : 2
  }];
  if (steps.per_entry > 1)
    datasets.push(
        {
          label: 'longest',
          data: points(steps.max),
          borderWidth: 0,
          pointRadius: 0,
          fill: '+1',
          backgroundColor: faded(line, 0.2)
        },
        {label: 'shortest', data: points(steps.min), borderWidth: 0, pointRadius: 0});
  return datasets;
}

function timelineFigure(run) {
  if (!run.steps) return null;
  const {steps} = run;
  const {factor, unit} = timeUnit(windowOf(run));
  // The first steps of a run may take many times as long: the window decides the range.
  const inWindow =
      steps.per_entry > 1 ? steps.max.slice(Math.floor(steps.warmup / steps.per_entry)) : windowOf(run);
  const high = factor * Math.max(...inWindow), low = factor * Math.min(...windowOf(run));
  const cut = factor * Math.max(...steps.median) > high + 2 * (high - low) + 0.3 * high;
  const room = Math.max(high - low, 0.02 * high);
  byId('timeline-note').textContent =
      (steps.per_entry > 1 ? `Median and range of ${steps.per_entry} iterations each, rank 0.` :
                             'Every iteration, rank 0.') +
      ' Shaded: warm-up, which no average counts.' + (cut ? ' Its longest steps reach beyond the top.' : '');
  const y = axis(
      unit,
      cut ? {min: Math.max(0, low - room), max: high + room, ticks: {includeBounds: false}} : {grace: '10%'});
  const time = {unit, csvUnit: 's', text: (value) => plain(factor * value)};
  const columns = [{name: 'Iteration', text: count}, {name: 'Step time', ...time}];
  if (steps.per_entry > 1) columns.push({name: 'Shortest', ...time}, {name: 'Longest', ...time});
  return {
    label: `Line of ${plural(steps.iterations, 'step time')}; ${
        count(steps.warmup)} of them warm-up; median behind it ${seconds(run.histogram.median)}.`,
    table: {
      caption: `Step times of ${run.label}`,
      columns,
      rows: steps.median.map(
          (value,
           i) => [i * steps.per_entry, value, ...(steps.per_entry > 1 ? [steps.min[i], steps.max[i]] : [])]),
    },
    config: chartConfig(
        'line', {datasets: timelineDatasets(steps, factor)}, {
          x: axis(
              'iteration',
              {type: 'linear', min: 0, max: Math.max(1, steps.iterations - 1), ticks: {precision: 0}}),
          y
        },
        {
          title: ([item]) => `iteration ${count(Math.round(item.raw.x))}`,
          label: ({dataset, raw}) => `${dataset.label}: ${plain(raw.y)} ${unit}`
        },
        {
          interaction: {mode: 'index', intersect: false},
          ranges: {x: steps.warmup ? [[0, steps.warmup - 0.5, 'warm-up']] : []}
        }),
  };
}

// Percentiles where there are enough steps for them, else all.
const spreadText = ({min, max, p1, p99}) =>
    (isNumber(p99) ? `1st to 99th percentile ${seconds(p1)} to ${seconds(p99)}` :
                     `${seconds(min)} to ${seconds(max)} in all`);

function histogramFigure(run) {
  if (!run.histogram?.counts.length) return null;
  const {low, width, counts, above, median} = run.histogram;
  const {factor, unit} = timeUnit([low + width * counts.length]);
  const decimals = Math.max(0, Math.ceil(-Math.log10(factor * width) - 1e-9));
  const edge = (bin) => (factor * (low + bin * width)).toFixed(Math.min(decimals, 9));
  const rows = counts.map((number, bin) => [`${edge(bin)} to ${edge(bin + 1)}`, number]);
  if (above) rows.push([`above ${edge(counts.length)}`, above]);
  byId('histogram-note').textContent =
      `Iterations behind the warm-up. Median ${seconds(median)}, ${spreadText(run.histogram)}.` +
      (above ? ` ${plural(above, 'step')} above the last bar ${above === 1 ? 'is' : 'are'} not drawn.` : '');
  return {
    label: `Histogram of step times: median ${seconds(median)}, ${spreadText(run.histogram)}.`,
    table: {
      caption: `Distribution of step times of ${run.label}`,
      columns: [{name: `Step time in ${unit}`}, {name: 'Iterations', text: count}],
      rows
    },
    config: chartConfig(
        'bar', {
          labels: rows.slice(0, counts.length).map(([label]) => label),
          datasets: [{...barsOf('steps', counts, 0), categoryPercentage: 1, barPercentage: 0.96}]
        },
        {
          x: axis(unit, {grid: {display: false}, ticks: {callback: (bin) => edge(bin)}}),
          y: axis('iterations', {beginAtZero: true, grace: '5%', ticks: {precision: 0}})
        },
        {title: ([item]) => `${item.label} ${unit}`, label: ({raw}) => plural(raw, 'iteration')}),
  };
}

// Host to its ranks, hosts in the order of their first ranks; one of no name where hosts aren't known.
function ranksByNode(ranks, all) {
  const nodes = new Map();
  for (let rank = 0; rank < all; ++rank) {
    const host = ranks?.[rank].host ?? '';
    nodes.set(host, [...(nodes.get(host) ?? []), rank]);
  }
  return nodes;
}

function ranksFigure(run) {
  const {rank_window_seconds: windows = [], ranks: all, gpus} = run.record ?? {};
  if (windows.length < 2) return null;
  const ranks = all?.length === windows.length ? all : null;
  const waits = ranks?.map((rank) => rank.exposed_communication_seconds);
  const shown = waits ?? windows;
  const {factor, unit} = timeUnit(shown);
  const nodes = ranksByNode(ranks, windows.length);
  const order = [...nodes.values()].flat();
  const place = [...nodes.values()].flatMap((members, node) => members.map(() => node));
  const title = waits ? `${unit} waited per step` : `${unit} for the window`;
  byId('ranks-note').textContent =
      (waits ?
           'Per step of the window: how long each rank waited in collectives. The one that the others wait for waits least.' :
           'How long the window took on each rank; this run didn\'t keep how long ranks waited for each other.') +
      (nodes.size > 1 ? ` Grouped by node, ${plural(nodes.size, 'node')}.` :
           ranks?.[0].host ? ` All on ${ranks[0].host}.` :
                             '');
  const columns = [
    {name: 'Rank', text: count}, ...(ranks ? [{name: 'Node', short: true}] : []),
    {name: 'Window', unit: 's', text: (value) => plain(value, 5)}
  ];
  const computes = ranks?.every((rank) => isNumber(rank.compute_seconds)) ? ranks : null;
  const perStep = {unit: `${unit} per step`, csvUnit: 's', text: (value) => plain(factor * value)};
  if (computes) columns.push({name: 'Computed', ...perStep});
  if (waits) columns.push({name: 'Waited in collectives', ...perStep});
  return {
    label: `Bars of ${plural(windows.length, 'rank')}: ${
        waits ? 'how long each waited in collectives per step' : 'how long each took for the window'}.`,
    table: {
      caption: `Ranks of ${run.label}`,
      columns: [...columns, ...(gpus ? kGpuColumns : [])],
      rows: order.map(
          (i) =>
              [i, ...(ranks ? [ranks[i].host] : []), windows[i],
               ...(computes ? [computes[i].compute_seconds] : []), ...(waits ? [waits[i]] : []),
               ...gpuCells(run.record, i)])
    },
    config: chartConfig(
        'bar', {
          labels: order.map((i, at) => (nodes.size > 1 && place[at] !== place[at - 1] ? [`${i}`, ranks[i].host] : `${i}`)),
          datasets: [{
            label: title,
            data: order.map((i) => factor * shown[i]),
            backgroundColor: place.map((node) => seriesColor(1 + 4 * (node % 2))),
            maxBarThickness: 34
          }]
        },
        {
          x: axis('rank', {grid: {display: false}, ticks: {maxRotation: 0}}),
          y: axis(title, {beginAtZero: true})
        },
        {
          title: ([item]) => ['rank ' + order[item.dataIndex], ranks?.[order[item.dataIndex]].host]
                                 .filter(Boolean)
                                 .join(' on '),
          label: ({raw}) => `${plain(raw)} ${unit}`
        }),
  };
}
