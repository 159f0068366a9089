// Throughput per device: own results on one device, and the smallest case of each published line of such a device.

function barsFigure(data) {
  const own = data.curves.filter(({points}) => points[0].devices === 1);
  if (!own.length) return null;
  const rows = [...own, ...data.published.filter((curve) => curve.same_device)].map((curve) => {
    const [{median, devices, source}] = curve.points;
    const label = devices === 1 ? curve.label : `${curve.label}, on ${plural(devices, 'device')}`;
    return {label, speed: median / devices, differences: curve.differences, source};
  });
  const bars = (title, index, isOne) => ({
    ...barsOf(title, rows.map(({speed}, i) => (isOne(i) ? speed : null)), index, 26),
    grouped: false,
  });
  return {
    bars: rows.length,
    label: 'Bars of throughput per device.',
    table: tableOf('Throughput per device', rows, [
      {name: 'Line', value: ({label}) => label},
      {name: 'Throughput', unit: 'images/s', text: plain, value: ({speed}) => speed},
      {name: 'Differs in', value: ({differences}) => differences}, {name: 'Source', value: ({source}) => source}
    ]),
    config: barsConfig(
        rows.map(({label}) => label),
        [bars('measured', 0, (i) => i < own.length), bars('published', 1, (i) => i >= own.length)], 'images/s',
        {label: ({raw}) => `${plain(raw)} images/s`}, {legend: true}),
  };
}
