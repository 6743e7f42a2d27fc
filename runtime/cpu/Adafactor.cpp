//===- Adafactor.cpp - Adafactor's updates on cpu -------------------------===//
//
// Three passes over the gradient: the moments, with the parameter's own size;
// the size of the update; the update. A tensor without rows needs two.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Adafactor.h"
#include "runtime/cpu/Updates.h"

namespace tmc {

using namespace updates;

struct Adafactor::State {};
Adafactor::Adafactor(const Params &params) : params_(params) {}
Adafactor::~Adafactor() = default;

Status Adafactor::prepare(Device &) {
  return cpu::requireScratch("adafactor", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

namespace {

using adafactor::Sums;

template <typename Param, typename Grad> class AdafactorStep {
public:
  AdafactorStep(Stream &stream, const Adafactor::Params &q, In ins, Out outs,
                void *scratch)
      : stream(stream), q(q), sums(q), rate(*floats(operand(ins, 4))),
        step(*longs(operand(ins, 5))),
        f(adafactor::factors(q, &rate, &step, floats(operand(ins, 6)))),
        scale(simd::splat(f.scale)), leastSquare(simd::splat(f.leastSquare)),
        grad(static_cast<const Grad *>(operand(ins, 1))),
        param(static_cast<Param *>(result(outs, 0))),
        first(floats(result(outs, 1))), second(floats(result(outs, 2))),
        paramLines(Sums::at(scratch, sums.params)),
        updateLines(Sums::at(scratch, sums.updates)),
        columns(Sums::at(scratch, sums.columns)),
        means(Sums::at(scratch, sums.means)) {}

  void run(const RoundedCopy &copy) {
    if (sums.isFactored) {
      sumMatrices();
      finishColumns();
      finishMeans();
      sumUpdates();
    } else {
      sumElements();
    }
    apply(copy, adafactor::moveOf(q, rate, step, total(paramLines),
                                  total(updateLines)));
  }

private:
  Stream &stream;
  const Adafactor::Params &q;
  const Sums sums;
  const float rate;
  const int64_t step;
  const adafactor::Factors f;
  const V scale, leastSquare;
  const Grad *grad;
  Param *param;
  float *first, *second, *paramLines, *updateLines, *columns, *means;

  /// Runs body(begin, end) over [0, count) of items with `elements` elements
  /// each.
  template <typename F>
  void eachRange(int64_t count, int64_t elements, F &&body) {
    const int64_t some = std::max<int64_t>(1, kUpdateTile / elements);
    parallelFor(stream, (count + some - 1) / some, [&](int64_t i, int64_t) {
      body(i * some, std::min(count, (i + 1) * some));
    });
  }

  /// The sum of the squares of `count` numbers; at(i, n) loads n of them.
  template <typename F> static float line(int64_t count, F &&at) {
    Wide sum = simd::splatWide(0);
    eachVector(0, count, {}, [&](int64_t i, int part, int64_t n) {
      const V x = at(i, n);
      sum.part[part] = simd::fma(x, x, sum.part[part]);
    });
    return simd::sum(sum);
  }
  float paramLine(int64_t begin, int64_t count) const {
    return line(count, [&](int64_t i, int64_t n) {
      return loadSome(param + begin + i, n);
    });
  }
  double total(const float *lines) const {
    double lanes[adafactor::kTotalLanes] = {};
    for (int64_t i = 0; i < sums.lines; ++i)
      lanes[i % adafactor::kTotalLanes] += double(lines[i]);
    return reduceAsBlock(lanes, adafactor::kTotalLanes);
  }

  void sumMatrices() {
    const int64_t elements = sums.tileRows * q.columns;
    eachRange(q.batch * sums.tiles, elements, [&](int64_t begin, int64_t end) {
      for (int64_t tile = begin; tile < end; ++tile)
        sumTile(tile);
    });
  }
  /// The moments of rows, and a tile's part of the moments of columns.
  void sumTile(int64_t tile) {
    const int64_t matrix = tile / sums.tiles;
    const int64_t from = tile % sums.tiles * sums.tileRows;
    const int64_t to = std::min(q.rows, from + sums.tileRows);
    float *column = columns + tile * q.columns;
    for (int64_t row = from; row < to; ++row) {
      const int64_t r = matrix * q.rows + row, at = r * q.columns;
      const float squares = line(q.columns, [&](int64_t i, int64_t n) {
        const V g = loadSome(grad + at + i, n) * scale;
        const V before = row == from ? V{} : loadSome(column + i, n);
        storeSome(column + i, simd::fma(g, g, before), n);
        return g;
      });
      first[r] = adafactor::moved(first[r], squares / float(q.columns), f);
      paramLines[r] = paramLine(at, q.columns);
    }
  }
  void finishColumns() {
    eachRange(q.batch, sums.tiles * q.columns, [&](int64_t begin, int64_t end) {
      for (int64_t matrix = begin; matrix < end; ++matrix)
        eachVector(0, q.columns, {}, [&](int64_t i, int, int64_t n) {
          V sum{};
          for (int64_t tile = 0; tile < sums.tiles; ++tile)
            sum =
                sum +
                loadSome(columns + (matrix * sums.tiles + tile) * q.columns + i,
                         n);
          float *moment = second + matrix * q.columns + i;
          storeSome(
              moment,
              adafactor::moved(loadSome(moment, n), sum / float(q.rows), f), n);
        });
    });
  }
  void finishMeans() {
    eachRange(q.batch, q.rows, [&](int64_t begin, int64_t end) {
      for (int64_t matrix = begin; matrix < end; ++matrix) {
        Wide sum = simd::splatWide(0);
        eachVector(0, q.rows, {}, [&](int64_t i, int part, int64_t n) {
          sum.part[part] =
              sum.part[part] + loadSome(first + matrix * q.rows + i, n);
        });
        means[matrix] = adafactor::divisorOf(f, simd::sum(sum), q.rows);
      }
    });
  }

  /// The updates of `n` elements of row r, from column c on.
  V updates(int64_t r, int64_t c, int64_t n) const {
    const int64_t matrix = r / q.rows;
    const V g = loadSome(grad + r * q.columns + c, n) * scale;
    const V moment = simd::splat(first[r]) *
                     loadSome(second + matrix * q.columns + c, n) /
                     means[matrix];
    return adafactor::updateOf(g, moment, leastSquare, simd::sqrt);
  }
  /// The same for tensors with a moment for each element.
  V updates(int64_t i, int64_t n) const {
    return adafactor::updateOf(loadSome(grad + i, n) * scale,
                               loadSome(first + i, n), leastSquare, simd::sqrt);
  }

  void sumUpdates() {
    eachRange(sums.lines, q.columns, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        updateLines[r] = line(
            q.columns, [&](int64_t c, int64_t n) { return updates(r, c, n); });
    });
  }
  void sumElements() {
    eachRange(sums.lines, adafactor::kLine, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t at = r * adafactor::kLine;
        const int64_t count = std::min(adafactor::kLine, q.count - at);
        paramLines[r] = paramLine(at, count);
        updateLines[r] = line(count, [&](int64_t i, int64_t n) {
          const V g = loadSome(grad + at + i, n) * scale;
          float *moment = first + at + i;
          storeSome(moment, adafactor::moved(loadSome(moment, n), V(g * g), f),
                    n);
          return updates(at + i, n);
        });
      }
    });
  }

  void apply(const RoundedCopy &copy, float move) {
    parallelFor(stream, tilesOf(q.count), [&](int64_t tile, int64_t) {
      Chance<kDrawnValues<Param, float, 0>> chance(q.stream, step);
      const V moves = simd::splat(move), decay = simd::splat(f.decay);
      const int64_t end = std::min(q.count, (tile + 1) * kUpdateTile);
      alignas(64) float some[adafactor::kLine];
      for (int64_t at = tile * kUpdateTile; at < end; at += adafactor::kLine) {
        const int64_t count = std::min(adafactor::kLine, end - at);
        fill(some, at, count);
        eachVector(0, count, {}, [&](int64_t i, int, int64_t n) {
          chance.moveTo(at + i);
          const V p = loadSome(param + at + i, n) * decay +
                      loadSome(some + i, n) * moves;
          chance.store(0, param + at + i, p, n);
          if constexpr (!isNarrow<Param>)
            storeSome(copy, at + i, p, n);
        });
      }
    });
  }
  /// The updates of elements from `at` on; rows may end anywhere.
  void fill(float *some, int64_t at, int64_t count) const {
    if (!sums.isFactored)
      return eachVector(0, count, {}, [&](int64_t i, int, int64_t n) {
        storeSome(some + i, updates(at + i, n), n);
      });
    for (int64_t done = 0; done < count;) {
      const int64_t r = (at + done) / q.columns, c = (at + done) % q.columns;
      const int64_t here = std::min(q.columns - c, count - done);
      eachVector(0, here, {}, [&](int64_t i, int, int64_t n) {
        storeSome(some + done + i, updates(r, c + i, n), n);
      });
      done += here;
    }
  }
};

} // namespace

void Adafactor::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  withUpdated(
      params_.param, params_.grad, DType::F32,
      [&](auto param, auto grad, auto) {
        using Param = decltype(param);
        using Grad = decltype(grad);
        reportSquares(stream, static_cast<const Grad *>(operand(ins, 1)),
                      params_.count, scratch, floats(result(outs, 3)));
        if (!isSkipped(longs(operand(ins, 5)), floats(operand(ins, 6))))
          AdafactorStep<Param, Grad>(stream, params_, ins, outs, scratch)
              .run(RoundedCopy(params_.copy, result(outs, 4)));
      });
}

} // namespace tmc
