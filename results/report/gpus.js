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
  const gpu = run.record?.gpus?.find((one) => one.samples);
  if (!gpu) return null;
  const {samples} = gpu;
  const [smClock, power, temperature] = kGpuColumns;
  const line = (label, values, index, yAxisID, borderDash) => ({
    label,
    data: samples.seconds.map((x, i) => ({x, y: values[i]})),
    yAxisID,
    borderDash,
    borderColor: seriesColor(index),
    backgroundColor: seriesColor(index),
    borderWidth: 1.5,
    pointRadius: 0,
  });
  const held = [];
  samples.seconds.forEach((from, i) => {
    if (samples.throttled[i]) held.push([from, samples.seconds[i + 1] ?? gpu.window_seconds]);
  });
  return {
    label: `Lines of rank ${gpu.rank}'s GPU: SM clock, ${
        plain(gpu.sm_clock_mhz.median)} MHz at the median, and power, ${plain(gpu.power_watts.median)} W.`,
    table: {
      caption: `GPU clocks and power of ${run.label}`,
      columns: [
        {name: 'Time', unit: 's', text: plain}, smClock, {...smClock, name: 'Memory clock'}, power,
        temperature, {name: 'Held back'}
      ],
      rows: samples.seconds.map(
          (time, i) =>
              [time, samples.sm_clock_mhz[i], samples.memory_clock_mhz[i], samples.power_watts[i],
               samples.temperature_celsius[i], samples.throttled[i] ? 'yes' : 'no']),
    },
    config: chartConfig(
        'line', {
          datasets: [
            line('SM clock (MHz)', samples.sm_clock_mhz, 0, 'y', []),
            line('power (W)', samples.power_watts, 1, 'power', [6, 3])
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
