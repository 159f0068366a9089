// One run: step times, ranks, GPU clocks.

const windowOf = ({steps}) => steps.median.slice(Math.floor(steps.warmup / steps.per_entry));

// Step times, or the medians of several with the range between shortest and longest.
function timelineDatasets(steps, factor) {
  const at = (i) => i * steps.per_entry + (steps.per_entry - 1) / 2;
  const points = (values) => values.map((value, i) => ({x: at(i), y: factor * value}));
  const line = seriesColour(0);
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
  document.getElementById('timeline-note').textContent =
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

function histogramFigure(run) {
  if (!run.histogram?.counts.length) return null;
  const {low, width, counts, above, median, p1, p99} = run.histogram;
  const {factor, unit} = timeUnit([low + width * counts.length]);
  const decimals = Math.max(0, Math.ceil(-Math.log10(factor * width) - 1e-9));
  const edge = (bin) => (factor * (low + bin * width)).toFixed(Math.min(decimals, 9));
  const rows = counts.map((number, bin) => [`${edge(bin)} to ${edge(bin + 1)}`, number]);
  if (above) rows.push([`above ${edge(counts.length)}`, above]);
  document.getElementById('histogram-note').textContent =
      `Iterations behind the warm-up. Median ${seconds(median)}, from ${seconds(p1)} (1st percentile) to ${
          seconds(p99)} (99th).` +
      (above ? ` ${plural(above, 'step')} above the last bar ${above === 1 ? 'is' : 'are'} not drawn.` : '');
  return {
    label: `Histogram of step times: median ${seconds(median)}, 1st percentile ${
        seconds(p1)}, 99th percentile ${seconds(p99)}.`,
    table: {
      caption: `Distribution of step times of ${run.label}`,
      columns: [{name: `Step time in ${unit}`}, {name: 'Iterations', text: count}],
      rows
    },
    config: chartConfig(
        'bar', {
          labels: counts.map((_, bin) => edge(bin)),
          datasets: [{
            label: 'iterations',
            data: counts,
            backgroundColor: seriesColour(0),
            barPercentage: 1,
            categoryPercentage: 0.94
          }]
        },
        {
          x: axis(`${unit} (start of each bar)`, {grid: {display: false}, ticks: {maxRotation: 0}}),
          y: axis('iterations', {beginAtZero: true, ticks: {precision: 0}})
        },
        {
          title: ([item]) => `${rows[item.dataIndex][0]} ${unit}`,
          label: ({raw}) => plural(raw, 'iteration')
        }),
  };
}

function ranksFigure(run) {
  const windows = run.rank_window_seconds ?? [];
  if (windows.length < 2) return null;
  const ranks = run.ranks?.length === windows.length ? run.ranks : null;
  const waits = ranks?.map((rank) => rank.exposed_communication_seconds);
  const shown = waits ?? windows;
  const {factor, unit} = timeUnit(shown);
  const name = (i) => (ranks?.[i].host ? `${i} · ${ranks[i].host}` : `${i}`);
  const title = waits ? `${unit} waited per step` : `${unit} for the window`;
  document.getElementById('ranks-note').textContent = waits ?
      'Per step of the window: how long each rank waited in collectives. The one that the others wait for waits least.' :
      'How long the window took on each rank; this run didn\'t keep how long ranks waited for each other.';
  const columns = [{name: 'Rank'}, {name: 'Window', unit: 's', text: (value) => plain(value, 5)}];
  if (waits)
    columns.push({
      name: 'Waited in collectives',
      unit: `${unit} per step`,
      csvUnit: 's',
      text: (value) => plain(factor * value)
    });
  return {
    label: `Bars of ${plural(windows.length, 'rank')}: ${
        waits ? 'how long each waited in collectives per step' : 'how long each took for the window'}.`,
    table: {
      caption: `Ranks of ${run.label}`,
      columns: [...columns, ...(run.gpus ? kGpuColumns : [])],
      rows: windows.map((value, i) => [name(i), value, ...(waits ? [waits[i]] : []), ...gpuCells(run, i)])
    },
    config: chartConfig(
        'bar', {
          labels: windows.map((_, i) => `${i}`),
          datasets: [{
            label: title,
            data: shown.map((value) => factor * value),
            backgroundColor: seriesColour(1),
            maxBarThickness: 34
          }]
        },
        {
          x: axis('rank', {grid: {display: false}, ticks: {maxRotation: 0}}),
          y: axis(title, {beginAtZero: true})
        },
        {title: ([item]) => `rank ${name(item.dataIndex)}`, label: ({raw}) => `${plain(raw)} ${unit}`}),
  };
}
