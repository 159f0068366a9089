// Ops against the roofline.

function kindsFigure(run) {
  if (!run.profile) return null;
  const {kinds} = run.profile;
  const {factor, unit, times} = timeUnit(kinds.map((kind) => kind.seconds));
  const bars = (label, value, index) => barsOf(label, kinds.map((kind) => factor * kind[value]), index, 12);
  const all = kinds.reduce((sum, kind) => sum + kind.seconds, 0);
  return {
    label: `Bars of time per kind of op, measured and by the roofline; the longest is ${
        words(kinds[0]?.name ?? '')}.`,
    table: tableOf(`Time by kind of op of ${run.label}`, kinds, [
      {name: 'Kind', value: (kind) => words(kind.name)}, {name: 'Ops', text: count, value: (kind) => kind.ops},
      {name: 'Measured', ...times, value: (kind) => kind.seconds},
      {name: 'Roofline', ...times, value: (kind) => kind.roofline_seconds},
      {name: 'Share', text: percent, value: (kind) => kind.seconds / all}
    ]),
    config: barsConfig(
        kinds.map((kind) => words(kind.name)),
        [bars('measured', 'seconds', 0), bars('roofline', 'roofline_seconds', 7)], `${unit} per iteration`,
        {label: ({dataset, raw}) => `${dataset.label}: ${plain(raw)} ${unit}`},
        {legend: true, ticks: {autoSkip: false}}),
  };
}

// Points of one color for each thing that may limit an op.
function pointsByBound(ops, factor) {
  const bounds = [['compute', 0], ['bandwidth', 1], ['latency', 4]];
  const present = bounds.filter(([bound]) => ops.some((op) => op.bound_by === bound));
  return present.map(([bound, index], i) => ({
                      label: `held by ${bound}`,
                      data: ops.filter((op) => op.bound_by === bound)
                                .map((op) => ({x: factor * op.roofline_seconds, y: factor * op.seconds, op})),
                      backgroundColor: faded(seriesColor(index), 0.55),
                      borderColor: seriesColor(index),
                      pointStyle: kMarkers[i],
                      pointRadius: 4,
                    }));
}

function rooflineFigure(run) {
  if (!run.profile) return null;
  const drawn = run.profile.ops.filter((op) => op.roofline_seconds > 0 && op.seconds > 0);
  if (!drawn.length) return null;
  const times = drawn.flatMap((op) => [op.seconds, op.roofline_seconds]);
  const {factor, unit} = timeUnit([[...times].sort((a, b) => a - b)[times.length >> 1]]);
  const datasets = pointsByBound(drawn, factor);
  const [low, high] = [factor * Math.min(...times), factor * Math.max(...times)];
  datasets.push({
    type: 'line',
    ...idealLine('roofline', [{x: low / 1.2, y: low / 1.2}, {x: high * 1.2, y: high * 1.2}])
  });
  const lost = (op) => op.seconds - op.roofline_seconds;
  const tick = (value) => plain(value, 1);
  const label = ({raw: {op}}) =>
      op ? [op.name, `${seconds(op.seconds)}, roofline ${seconds(op.roofline_seconds)}`] : 'roofline';
  const time = {unit: 'µs', csvUnit: 's', text: (value) => plain(1e6 * value)};
  return {
    label: `Points of ${plural(drawn.length, 'op')}, measured time over roofline time.`,
    table: tableOf(
        `Ops of ${run.label}, those first that lose most against the roofline`,
        [...drawn].sort((a, b) => lost(b) - lost(a)), [
          {name: 'Op', value: (op) => op.name}, {name: 'Kind', value: (op) => words(op.kind)},
          {name: 'Engine', value: (op) => op.engine}, {name: 'Held by', value: (op) => op.bound_by},
          {name: 'Measured', ...time, value: (op) => op.seconds},
          {name: 'Roofline', ...time, value: (op) => op.roofline_seconds}, {name: 'Lost', ...time, value: lost},
          {name: 'Achieved', unit: 'FLOP/s', text: (value) => rate(value, ''), value: (op) => op.flops_per_second},
          {name: 'Achieved', unit: 'B/s', text: (value) => rate(value, ''), value: (op) => op.bytes_per_second}
        ]),
    config: chartConfig(
        'scatter', {datasets}, {
          x: logAxis(`roofline time, ${unit}`, [low, high], tick),
          y: logAxis(`measured time, ${unit}`, [low, high], tick)
        },
        {label}, {legend: {}}),
  };
}
