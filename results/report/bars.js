// Throughput per device: own results on one device, and the smallest case of each published line of such a device.

function barsFigure(data) {
  const own = data.curves.filter(({points}) => points[0].devices === 1);
  if (!own.length) return null;
  const published = data.published.filter((curve) => curve.same_device);
  const rows = [...own, ...published].map((curve, i) => {
    const [{median, devices, source}] = curve.points;
    return {
      label: devices === 1 ? curve.label : `${curve.label}, on ${plural(devices, 'device')}`,
      published: i >= own.length,
      speed: median / devices,
      differences: curve.differences,
      source: source ?? curve.source,
    };
  });
  const bars = (title, published, index) => ({
    ...barsOf(title, rows.map((row) => (row.published === published ? row.speed : null)), index, 26),
    grouped: false,
  });
  const labels = rows.map(({label}) => label);
  return {
    bars: barsHeight(labels),
    label: 'Bars of throughput per device.',
    table: tableOf('Throughput per device', rows, [
      {name: 'Line', value: ({label}) => label},
      {name: 'Throughput', unit: 'images/s', text: plain, value: ({speed}) => speed},
      {name: 'Differs in', value: ({differences}) => differences}, {name: 'Source', value: ({source}) => source}
    ]),
    config: barsConfig(
        labels, [bars('measured', false, 0), bars('published', true, 1)], 'images/s', {
          label: ({raw, dataIndex}) =>
              [`${plain(raw)} images/s`, rows[dataIndex].differences, rows[dataIndex].source].filter(Boolean)
        },
        {legend: true}),
  };
}
