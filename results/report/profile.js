// Steps against the roofline.

function kindsFigure(run) {
  if (!run.profile) return null;
  const {kinds} = run.profile;
  const {factor, unit} = timeUnit(kinds.map((kind) => kind.seconds));
  const bars = (label, value, index) => barsOf(label, kinds.map((kind) => factor * kind[value]), index, 12);
  const time = {unit, csvUnit: 's', text: (value) => plain(factor * value)};
  const all = kinds.reduce((sum, kind) => sum + kind.seconds, 0);
  return {
    label: `Bars of time per kind of instruction, measured and by the roofline; the longest is ${
        words(kinds[0]?.name ?? '')}.`,
    table: {
      caption: `Time by kind of instruction of ${run.label}`,
      columns: [
        {name: 'Kind'}, {name: 'Steps', text: count}, {name: 'Measured', ...time},
        {name: 'Roofline', ...time}, {name: 'Share', text: percent}
      ],
      rows: kinds.map(
          (kind) => [words(kind.name), kind.steps, kind.seconds, kind.roofline_seconds, kind.seconds / all]),
    },
    config: chartConfig(
        'bar', {
          labels: kinds.map((kind) => words(kind.name)),
          datasets: [bars('measured', 'seconds', 0), bars('roofline', 'roofline_seconds', 7)]
        },
        {
          x: axis(`${unit} per iteration`, {beginAtZero: true}),
          y: {grid: {display: false}, ticks: {autoSkip: false}}
        },
        {label: ({dataset, raw}) => `${dataset.label}: ${plain(raw)} ${unit}`},
        {indexAxis: 'y', legend: {labels: {pointStyle: 'rect'}}}),
  };
}

// Points of one color for each thing that may hold a step.
function pointsByBound(steps, factor) {
  const bounds =
      ['compute', 'bandwidth', 'latency'].filter((bound) => steps.some((step) => step.bound_by === bound));
  return bounds.map((bound, i) => ({
                      label: `held by ${bound}`,
                      data: steps.filter((step) => step.bound_by === bound)
                                .map((step) => ({x: factor * step.roofline_seconds, y: factor * step.seconds, step})),
                      backgroundColor: faded(namedColor(bound), 0.55),
                      borderColor: namedColor(bound),
                      pointStyle: kMarkers[i],
                      pointRadius: 4,
                    }));
}

function rooflineFigure(run) {
  if (!run.profile) return null;
  const drawn = run.profile.steps.filter((step) => step.roofline_seconds > 0 && step.seconds > 0);
  if (!drawn.length) return null;
  const times = drawn.flatMap((step) => [step.seconds, step.roofline_seconds]);
  const {factor, unit} = timeUnit([[...times].sort((a, b) => a - b)[times.length >> 1]]);
  const datasets = pointsByBound(drawn, factor);
  const [low, high] = [factor * Math.min(...times), factor * Math.max(...times)];
  datasets.push({
    type: 'line',
    ...idealLine('roofline', [{x: low / 1.2, y: low / 1.2}, {x: high * 1.2, y: high * 1.2}])
  });
  const lost = (step) => step.seconds - step.roofline_seconds;
  const tick = (value) => plain(value, 1);
  const label = ({raw: {step}}) =>
      step ? [step.name, `${seconds(step.seconds)}, roofline ${seconds(step.roofline_seconds)}`] : 'roofline';
  const time = {unit: 'µs', csvUnit: 's', text: (value) => plain(1e6 * value)};
  return {
    label: `Points of ${plural(drawn.length, 'instruction')}, measured time over roofline time.`,
    table: {
      caption: `Steps of ${run.label}, those first that lose most against the roofline`,
      columns: [
        {name: 'Instruction'}, {name: 'Kind'}, {name: 'Held by'}, {name: 'Measured', ...time},
        {name: 'Roofline', ...time}, {name: 'Lost', ...time},
        {name: 'Achieved', unit: 'FLOP/s', text: (value) => rate(value, '')},
        {name: 'Achieved', unit: 'B/s', text: (value) => rate(value, '')}
      ],
      rows: [...drawn]
                .sort((a, b) => lost(b) - lost(a))
                .map(
                    (step) =>
                        [step.name, words(step.kind), step.bound_by, step.seconds,
                         step.roofline_seconds, lost(step), step.flops_per_second, step.bytes_per_second]),
    },
    config: chartConfig(
        'scatter', {datasets}, {
          x: logAxis(`roofline time, ${unit}`, [low, high], tick),
          y: logAxis(`measured time, ${unit}`, [low, high], tick)
        },
        {label}, {legend: {}}),
  };
}
