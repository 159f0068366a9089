// One run: step times and ranks.

function timelineFigure(run) {
  const {warmup, seconds: steps} = run.steps ?? {seconds: []};
  const inWindow = steps.slice(warmup);
  if (!inWindow.length) return null;
  const {factor, unit, times} = timeUnit(inWindow);
  // The first steps of a run may take many times as long: the window decides the range.
  const high = factor * Math.max(...inWindow), low = factor * Math.min(...inWindow);
  const room = Math.max(high - low, 0.02 * high);
  const colorOf = (step) => (step < warmup ? color('soft') : seriesColor(0));
  const y = axis(unit, {min: Math.max(0, low - room), max: high + room, ticks: {includeBounds: false}});
  return {
    label: `Line of ${plural(steps.length, 'step time')}; ${count(warmup)} of them warm-up.`,
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
  const hosts = [...new Set(ranks.map(({host}) => host))];
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
    table: tableOf(`Ranks of ${run.label}`, [...ranks.keys()], columns.filter(Boolean)),
    config: chartConfig(
        'bar', {
          labels: [...ranks.keys()],
          datasets: [{
            label: title,
            data: waits.map((wait) => factor * wait),
            backgroundColor: ranks.map(({host}) => seriesColor(hosts.indexOf(host))),
            maxBarThickness: 34
          }]
        },
        {
          x: axis('rank', {grid: {display: false}, ticks: {maxRotation: 0}}),
          y: axis(title, {beginAtZero: true})
        },
        {
          title: ([{dataIndex}]) => `rank ${dataIndex} on ${ranks[dataIndex].host}`,
          label: ({raw}) => `${plain(raw)} ${unit}`
        }),
  };
}
