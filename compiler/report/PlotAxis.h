// PlotAxis.h - axes of pictures: from data to a place, with round ticks.

#ifndef TMC_COMPILER_REPORT_PLOTAXIS_H
#define TMC_COMPILER_REPORT_PLOTAXIS_H

#include <cmath>
#include <cstdio>
#include <string>

namespace tmc {

/// Maps data to a box of the picture and chooses round ticks.
struct PlotAxis {
  double low, high;  // Data.
  double begin, end; // Picture.
  double at(double value) const {
    return high > low ? begin + (value - low) / (high - low) * (end - begin)
                      : (begin + end) / 2;
  }
  /// 1, 2 or 5 times a power of ten; there are about `count` of them.
  double step(int count) const {
    double raw = (high - low) / count;
    if (!(raw > 0))
      return 1;
    double unit = std::pow(10, std::floor(std::log10(raw)));
    for (double factor : {1., 2., 5., 10.})
      if (unit * factor >= raw)
        return unit * factor;
    return unit * 10;
  }
  /// The first tick.
  double first(double step) const { return std::ceil(low / step) * step; }
};

/// A tick as text.
inline std::string tick(double value) {
  char text[32];
  snprintf(text, sizeof text, "%g", std::round(value * 1e6) / 1e6);
  return text;
}

} // namespace tmc

#endif // TMC_COMPILER_REPORT_PLOTAXIS_H
