// What Chart.js lacks: intervals.

// A dataset's `intervals` = [[low, high] or null, …]: a bar behind each point.
const intervalsPlugin = {
  id: 'intervals',
  beforeDatasetsDraw(chart) {
    const {ctx: context, scales} = chart;
    chart.data.datasets.forEach((dataset, index) => {
      if (!dataset.intervals || !chart.isDatasetVisible(index)) return;
      context.save();
      context.strokeStyle = dataset.borderColor;
      context.lineWidth = 3;
      dataset.intervals.forEach((interval, i) => {
        if (!interval) return;
        const x = scales.x.getPixelForValue(dataset.data[i].x);
        const [low, high] = interval.map((value) => scales.y.getPixelForValue(value));
        context.beginPath();
        context.moveTo(x, low);
        context.lineTo(x, high);
        context.stroke();
      });
      context.restore();
    });
  },
};

Chart.register(intervalsPlugin);
