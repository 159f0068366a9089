// GPUs while a run was timed: clocks, power, temperature.

// Medians over the window for each rank's GPU, where it tells.
const kGpuColumns = [
  {name: 'SM clock', unit: 'MHz', text: count}, {name: 'Power', unit: 'W', text: plain},
  {name: 'Temperature', unit: '°C', text: count}, {name: 'Held back', unit: 'of the time', text: percent}
];
function gpuCells({gpus}, rank) {
  if (!gpus) return [];
  const gpu = gpus.find((one) => one.rank === rank);
  return [
    ...['sm_clock_mhz', 'power_watts', 'temperature_celsius'].map((key) => gpu?.[key].median),
    gpu?.throttled_share
  ];
}

function clocksFigure(run) {
  const gpu = run.record?.gpus?.find((one) => one.moments);
  if (!gpu) return null;
  const {moments} = gpu;
  const [smClock, power, temperature] = kGpuColumns;
  const line = (label, values, index, yAxisID, borderDash) => ({
    label,
    data: moments.seconds.map((x, i) => ({x, y: values[i]})),
    yAxisID,
    borderDash,
    borderColor: seriesColor(index),
    backgroundColor: seriesColor(index),
    borderWidth: 1.5,
    pointRadius: 0,
  });
  const held = [];
  moments.seconds.forEach((from, i) => {
    if (moments.throttled[i]) held.push([from, moments.seconds[i + 1] ?? gpu.window_seconds]);
  });
  return {
    label: `Lines of rank ${gpu.rank}'s GPU: SM clock, ${
        plain(gpu.sm_clock_mhz.median)} MHz at the median, and power, ${
        plain(gpu.power_watts.median)} W.`,
    table: {
      caption: `GPU clocks and power of ${run.label}`,
      columns: [
        {name: 'Time', unit: 's', text: plain}, smClock, {...smClock, name: 'Memory clock'}, power,
        temperature, {name: 'Held back'}
      ],
      rows: moments.seconds.map(
          (time, i) =>
              [time, moments.sm_clock_mhz[i], moments.memory_clock_mhz[i], moments.power_watts[i],
               moments.temperature_celsius[i], moments.throttled[i] ? 'yes' : 'no']),
    },
    config: chartConfig(
        'line', {
          datasets: [
            line('SM clock (MHz)', moments.sm_clock_mhz, 0, 'y', []),
            line('power (W)', moments.power_watts, 1, 'power', [6, 3])
          ]
        },
        {
          x: axis('seconds of the window', {type: 'linear', min: 0}),
          y: axis('MHz', {beginAtZero: true}),
          power: axis('W', {position: 'right', beginAtZero: true, grid: {display: false}})
        },
        {title: ([item]) => `${plain(item.raw.x)} s`}, {
          interaction: {mode: 'index', intersect: false},
          ranges: {x: held},
          legend: {labels: {pointStyle: 'line'}}
        }),
  };
}
