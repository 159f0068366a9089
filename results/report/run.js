// One run: step times and ranks.

const windowOf = ({steps}) => steps.seconds.slice(steps.warmup);

function timelineFigure(run) {
  if (!run.steps) return null;
  const {steps: {iterations, warmup, seconds: steps}, distribution} = run;
  const inWindow = windowOf(run);
  const {factor, unit, times} = timeUnit(inWindow);
  // The first steps of a run may take many times as long: the window decides the range.
  const high = factor * Math.max(...inWindow), low = factor * Math.min(...inWindow);
  const cut = factor * Math.max(...steps) > high + 2 * (high - low) + 0.3 * high;
  const room = Math.max(high - low, 0.02 * high);
  byId('timeline-note').textContent =
      (steps.length < iterations ? `The first ${count(steps.length)} of ${count(iterations)} iterations` :
                                   'Every iteration') +
      ', rank 0. Gray: warm-up, which no average counts.' +
      (cut ? ' Its longest steps reach beyond the top.' : '');
  const colorOf = (step) => (step < warmup ? color('soft') : seriesColor(0));
  const y = axis(
      unit,
      cut ? {min: Math.max(0, low - room), max: high + room, ticks: {includeBounds: false}} : {grace: '10%'});
  return {
    label: `Line of ${plural(steps.length, 'step time')}; ${
        count(warmup)} of them warm-up; median behind it ${seconds(distribution?.median)}.`,
    table: {
      caption: `Step times of ${run.label}`,
      columns: [{name: 'Iteration', text: count}, {name: 'Step time', ...times}],
      rows: [...steps.entries()],
    },
    config: chartConfig(
        'line', {
          datasets: [{
            label: 'step',
            data: steps.map((value, x) => ({x, y: factor * value})),
            segment: {borderColor: ({p1DataIndex}) => colorOf(p1DataIndex)},
            borderColor: seriesColor(0),
            pointBorderColor: steps.map((_, x) => colorOf(x)),
            pointBackgroundColor: steps.map((_, x) => colorOf(x)),
            borderWidth: 1.5,
            pointRadius: steps.length > 150 ? 0 : 2
          }]
        },
        {
          x: axis('iteration', {type: 'linear', min: 0, max: Math.max(1, steps.length - 1), ticks: {precision: 0}}),
          y
        },
        {
          title: ([item]) => `iteration ${count(item.raw.x)}`,
          label: ({raw}) => `${plain(raw.y)} ${unit}`
        },
        {interaction: {mode: 'index', intersect: false}}),
  };
}

// Nearest rank: the smallest value that at least `share` of all are not above.
const quantile = (sorted, share) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];

// Of the steps in a run's window; null without steps. Percentiles need 100 steps.
function distributionOf(run) {
  const sorted = run.steps ? windowOf(run).filter((value) => value > 0).sort((a, b) => a - b) : [];
  if (!sorted.length) return null;
  const half = sorted.length >> 1;
  return {
    min: sorted[0],
    max: sorted.at(-1),
    median: sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2,
    ...(sorted.length >= 100 && {p1: quantile(sorted, 0.01), p99: quantile(sorted, 0.99)}),
    ...(run.steps.seconds.length < run.steps.iterations && {firsts: sorted.length}),
  };
}

// Percentiles where there are enough steps for them, else all.
const spreadText = ({min, max, p1, p99, firsts}) =>
    (isNumber(p99) ? `1st to 99th percentile ${seconds(p1)} to ${seconds(p99)}` :
                     `${seconds(min)} to ${seconds(max)} in all`) +
    (firsts ? `, of the first ${count(firsts)} iterations after the warm-up` : '');

// Host to its ranks, hosts in the order of their first ranks.
function ranksByNode(ranks) {
  const nodes = new Map();
  ranks.forEach(({host}, rank) => nodes.set(host, [...(nodes.get(host) ?? []), rank]));
  return nodes;
}

// Medians over the window of each rank's GPU, where it tells.
function gpuColumns(gpus) {
  if (!gpus) return [];
  const of = (rank) => gpus.find((one) => one.rank === rank);
  const median = (name, unit, text, key) => ({name, unit, text, value: (rank) => of(rank)?.[key].median});
  return [
    median('SM clock', 'MHz', count, 'sm_clock_mhz'), median('Power', 'W', plain, 'power_watts'),
    median('Temperature', '°C', count, 'temperature_celsius'),
    {name: 'Held back', unit: 'of the time', text: percent, value: (rank) => of(rank)?.throttled_share}
  ];
}

function ranksFigure(run) {
  const {rank_window_seconds: windows = [], ranks = [], gpus} = run.record ?? {};
  if (ranks.length < 2 || ranks.length !== windows.length) return null;
  const waits = ranks.map((rank) => rank.exposed_communication_seconds);
  const {factor, unit, times} = timeUnit(waits);
  const nodes = ranksByNode(ranks);
  const order = [...nodes.values()].flat();
  const place = [...nodes.values()].flatMap((members, node) => members.map(() => node));
  const title = `${unit} waited per step`;
  const perStep = {...times, unit: `${unit} per step`};
  const columns = [
    {name: 'Rank', text: count, value: (i) => i}, {name: 'Node', short: true, value: (i) => ranks[i].host},
    {name: 'Window', unit: 's', text: (value) => plain(value, 5), value: (i) => windows[i]},
    ranks.every((rank) => isNumber(rank.compute_seconds)) &&
        {name: 'Computed', ...perStep, value: (i) => ranks[i].compute_seconds},
    {name: 'Waited in collectives', ...perStep, value: (i) => waits[i]}, ...gpuColumns(gpus)
  ];
  return {
    label: `Bars of ${plural(ranks.length, 'rank')}: how long each waited in collectives per step.`,
    table: tableOf(`Ranks of ${run.label}`, order, columns.filter(Boolean)),
    config: chartConfig(
        'bar', {
          labels: order.map((i, at) => (nodes.size > 1 && place[at] !== place[at - 1] ? [`${i}`, ranks[i].host] : `${i}`)),
          datasets: [{
            label: title,
            data: order.map((i) => factor * waits[i]),
            backgroundColor: place.map((node) => seriesColor(1 + 4 * (node % 2))),
            maxBarThickness: 34
          }]
        },
        {
          x: axis('rank', {grid: {display: false}, ticks: {maxRotation: 0}}),
          y: axis(title, {beginAtZero: true})
        },
        {
          title: ([{dataIndex}]) => `rank ${order[dataIndex]} on ${ranks[order[dataIndex]].host}`,
          label: ({raw}) => `${plain(raw)} ${unit}`
        }),
  };
}
