// Kinds of ops against the roofline.

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
