// What Chart.js lacks: shaded ranges, intervals.

// options.plugins.ranges = {x: [[from, to, text], …]}: shaded, texts at the bottom. {phases: […]}, likewise:
// a line where each begins, texts above the chart, where layout.padding.top makes room.
function drawRanges(chart, ranges, draw) {
  const {ctx: context, chartArea: area, scales} = chart;
  context.save();
  for (const [from, to, text] of ranges ?? []) {
    const [left, right] = [from, to].map(
        (value) => Math.min(Math.max(scales.x.getPixelForValue(value), area.left), area.right));
    draw(context, area, left, right - left);
    context.fillStyle = color('soft');
    if (text && right - left > context.measureText(text).width)
      context.fillText(text, left + 5, context.textAt);
  }
  context.restore();
}

const rangesPlugin = {
  id: 'ranges',
  beforeDatasetsDraw(chart, _, options) {
    drawRanges(chart, options.x, (context, area, left, width) => {
      context.fillStyle = color('shade');
      context.fillRect(left, area.top, width, area.bottom - area.top);
      context.textAt = area.bottom - 6;
    });
  },
  afterDatasetsDraw(chart, _, options) {
    drawRanges(chart, options.phases, (context, area, left) => {
      context.fillStyle = color('soft');
      context.fillRect(left, area.top - 14, 1, area.bottom - area.top + 14);
      context.textAt = area.top - 4;
    });
  },
};

// A dataset's `intervals` = [[low, high] or null, …]: a bar behind each point.
const intervalsPlugin = {
  id: 'intervals',
  beforeDatasetsDraw(chart) {
    const {ctx: context, scales} = chart;
    chart.data.datasets.forEach((dataset, index) => {
      if (!dataset.intervals || !chart.isDatasetVisible(index)) return;
      context.save();
      context.strokeStyle = dataset.borderColor;
      context.lineWidth = 1.5;
      dataset.intervals.forEach((interval, i) => {
        if (!interval) return;
        const x = scales.x.getPixelForValue(dataset.data[i].x);
        const [low, high] = interval.map((value) => scales.y.getPixelForValue(value));
        context.beginPath();
        for (const y of [low, high]) {
          context.moveTo(x - 5, y);
          context.lineTo(x + 5, y);
        }
        context.moveTo(x, low);
        context.lineTo(x, high);
        context.stroke();
      });
      context.restore();
    });
  },
};

Chart.register(rangesPlugin, intervalsPlugin);
