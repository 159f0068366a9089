// What Chart.js lacks: rectangles on two linear axes, shaded ranges, intervals.

class PlainRectangle extends Chart.Element {
  static id = 'plainRectangle';
  static defaults = {};
  draw(context) {
    const {left, top, width, height, options} = this;
    context.fillStyle = options.backgroundColor;
    context.fillRect(left, top, width, height);
    if (width < 4 || height < 4) return;
    context.strokeStyle = options.borderColor;
    context.lineWidth = 1;
    context.strokeRect(left + 0.5, top + 0.5, width - 1, height - 1);
  }
  inRange(x, y) { return this.inXRange(x) && this.inYRange(y); }
  inXRange(x) { return x >= this.left && x <= this.left + Math.max(this.width, 2); }
  inYRange(y) { return y >= this.top && y <= this.top + Math.max(this.height, 2); }
  getCenterPoint() { return {x: this.left + this.width / 2, y: this.top + this.height / 2}; }
  tooltipPosition() { return this.getCenterPoint(); }
}

// Data are {x, y, width, height, fill}, in units of the axes; (x, y) is the corner with the smallest values.
class RectanglesController extends Chart.DatasetController {
  static id = 'rectangles';
  static defaults = {dataElementType: 'plainRectangle', animation: false};
  static overrides = {interaction: {mode: 'point', intersect: true}};
  update(mode) {
    const {xScale, yScale} = this._cachedMeta;
    const edge = colour('card');
    this._cachedMeta.data.forEach((rectangle, i) => {
      const item = this.getDataset().data[i];
      const left = xScale.getPixelForValue(item.x);
      const top = yScale.getPixelForValue(item.y + item.height);
      const width = Math.max(0.5, xScale.getPixelForValue(item.x + item.width) - left);
      const height = Math.max(0.5, yScale.getPixelForValue(item.y) - top);
      const options = {backgroundColor: namedColour(item.fill), borderColor: edge};
      this.updateElement(
          rectangle, i, {left, top, width, height, options, x: left + width / 2, y: top}, mode);
    });
  }
  getMinMax(scale) {
    const items = this.getDataset().data;
    const [at, size] = scale.axis === 'x' ? ['x', 'width'] : ['y', 'height'];
    return {
      min: Math.min(...items.map((item) => item[at])),
      max: Math.max(...items.map((item) => item[at] + item[size]))
    };
  }
}

// options.plugins.ranges = {x: [[from, to, text], …]}: shaded, texts at the bottom. {phases: […]}, likewise:
// a line where each begins, texts above the chart, where layout.padding.top makes room.
function drawRanges(chart, ranges, draw) {
  const {ctx: context, chartArea: area, scales} = chart;
  context.save();
  for (const [from, to, text] of ranges ?? []) {
    const [left, right] = [from, to].map(
        (value) => Math.min(Math.max(scales.x.getPixelForValue(value), area.left), area.right));
    draw(context, area, left, right - left);
    context.fillStyle = colour('soft');
    if (text && right - left > context.measureText(text).width)
      context.fillText(text, left + 5, context.textAt);
  }
  context.restore();
}

const rangesPlugin = {
  id: 'ranges',
  beforeDatasetsDraw(chart, _, options) {
    drawRanges(chart, options.x, (context, area, left, width) => {
      context.fillStyle = colour('shade');
      context.fillRect(left, area.top, width, area.bottom - area.top);
      context.textAt = area.bottom - 6;
    });
  },
  afterDatasetsDraw(chart, _, options) {
    drawRanges(chart, options.phases, (context, area, left) => {
      context.fillStyle = colour('soft');
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

Chart.register(PlainRectangle, RectanglesController, rangesPlugin, intervalsPlugin);
