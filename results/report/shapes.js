// What Chart.js lacks: a background for pictures, shaded ranges, intervals.

const backgroundPlugin = {
  id: 'background',
  beforeDraw({ctx: context, width, height}) {
    context.save();
    context.fillStyle = color('card');
    context.fillRect(0, 0, width, height);
    context.restore();
  },
};

// options.plugins.ranges = {x: [[from, to, text], …]}: shaded, texts at the bottom.
const rangesPlugin = {
  id: 'ranges',
  beforeDatasetsDraw({ctx: context, chartArea: area, scales}, _, {x}) {
    context.save();
    for (const [from, to, text] of x ?? []) {
      const [left, right] = [from, to].map(
          (value) => Math.min(Math.max(scales.x.getPixelForValue(value), area.left), area.right));
      context.fillStyle = color('shade');
      context.fillRect(left, area.top, right - left, area.bottom - area.top);
      context.fillStyle = color('soft');
      if (text && right - left > context.measureText(text).width)
        context.fillText(text, left + 5, area.bottom - 6);
    }
    context.restore();
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

Chart.register(backgroundPlugin, rangesPlugin, intervalsPlugin);
