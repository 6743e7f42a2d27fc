//===- FrozenCodes.cpp - frozen weights as codes on cpu -------------------===//

#include "runtime/cpu/FrozenCodes.h"

#include <algorithm>

namespace tmc::frozen {

namespace {

constexpr Table<kLevels> kLevelTable = levels();
constexpr Table<kLevels - 1> kLevelBounds = midpoints(kLevelTable);
constexpr Table<kMapped> kMap = dynamicMap();
constexpr Table<kMapped - 1> kMapBounds = midpoints(kMap);

template <typename V> V magnitude(V x) { return max(x, -x); }

/// The 16 values of a block. Aligned for loads of whole vectors.
template <typename T> struct alignas(64) BlockValues {
  T value[kLevels];

  explicit BlockValues(float absmax) {
    for (int i = 0; i < kLevels; i += kLanes)
      storeLanes<kLanes>(value + i,
                         loadLanes<kLanes>(kLevelTable.value + i) * absmax);
  }
};

} // namespace

float Maxima::of(int64_t block) const {
  if (plain_)
    return plain_[block];
  return nestedAbsmax(kMap.value[codes_[block]], nested_[block / kNestedBlock],
                      offset_);
}

//===----------------------------------------------------------------------===//
// Encoding
//===----------------------------------------------------------------------===//

template <typename T>
float rowAbsmax(const T *values, int64_t count, float absmax) {
  Floats<kLanes> most = splat<kLanes>(absmax);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    most = max(most, magnitude(loadLanes<kLanes>(values + i)));
  for (int lane = 0; lane < kLanes; ++lane)
    absmax = std::max<float>(absmax, most[lane]);
  for (; i < count; ++i)
    absmax = std::max(absmax, magnitude(loadLanes<1>(values + i)));
  return absmax;
}

template <typename T>
void encode(const T *values, int64_t count, uint8_t *codes, float *absmax) {
  for (int64_t at = 0; at < count; at += kBlock) {
    const float most = absmax[at / kBlock] = rowAbsmax(values + at, kBlock);
    const float inverse = inverseOf(most);
    int32_t numbers[kBlock];
    for (int i = 0; i < kBlock; i += kLanes) {
      const Floats<kLanes> x = loadLanes<kLanes>(values + at + i) * inverse;
      Ints<kLanes> code{};
      for (float bound : kLevelBounds.value)
        code -= x > splat<kLanes>(bound); // A mask's lanes are 0 or -1.
      storeLanes<kLanes>(numbers + i, code);
    }
    for (int i = 0; i < kBlock; i += 2)
      codes[(at + i) / 2] = uint8_t(numbers[i] << 4 | numbers[i + 1]);
  }
}

void nest(const float *absmax, int64_t blocks, uint8_t *codes, float *nested) {
  double sum = 0;
  for (int64_t i = 0; i < blocks; ++i)
    sum += double(absmax[i]);
  const float offset = blocks ? float(sum / double(blocks)) : 0;
  for (int64_t at = 0; at < blocks; at += kNestedBlock) {
    const int64_t end = std::min(at + kNestedBlock, blocks);
    float most = 0;
    for (int64_t i = at; i < end; ++i)
      most = std::max(most, magnitude(absmax[i] - offset));
    nested[at / kNestedBlock] = most;
    const float inverse = inverseOf(most);
    for (int64_t i = at; i < end; ++i)
      codes[i] =
          uint8_t(mappedCodeOf((absmax[i] - offset) * inverse, kMapBounds));
  }
  nested[nestedFloats(blocks) - 1] = offset;
}

template <typename T>
void encodeRow(const T *values, int64_t count, float absmax, int8_t *codes) {
  const float factor = rowFactor(absmax);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Floats<kLanes> x = loadLanes<kLanes>(values + i) * factor;
    storeLanes<kLanes>(codes + i, convert<int32_t>(nearestInteger(x)));
  }
  for (; i < count; ++i)
    codes[i] = rowCode(loadLanes<1>(values + i), factor);
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

namespace {

#ifdef __AVX2__

/// The codes of 32 elements, from 16 bytes, in two halves: a byte each.
struct Codes32 {
  __m128i first, second;

  explicit Codes32(const uint8_t *packed) {
    const __m128i bytes =
        _mm_loadu_si128(reinterpret_cast<const __m128i *>(packed));
    const __m128i low = _mm_set1_epi8(15);
    const __m128i even = _mm_and_si128(_mm_srli_epi16(bytes, 4), low);
    const __m128i odd = _mm_and_si128(bytes, low);
    first = _mm_unpacklo_epi8(even, odd);
    second = _mm_unpackhi_epi8(even, odd);
  }
  __m256i both() const { return _mm256_set_m128i(second, first); }
};

#endif

#ifdef __AVX512BW__

/// Looks 16 floats, or 32 halves, up at a time. With full masks, because g++ 12
/// warns of the other forms.
struct Lookup {
  __m512i table;

  explicit Lookup(const BlockValues<float> &values)
      : table(_mm512_load_si512(values.value)) {}
  template <typename T>
  explicit Lookup(const BlockValues<T> &values)
      : table(_mm512_maskz_broadcast_i64x4(
            __mmask8(-1), _mm256_load_si256(reinterpret_cast<const __m256i *>(
                              values.value)))) {}

  static void put(void *out, __m512i values) {
    _mm512_storeu_si512(out, values);
  }
  void findSixteen(__m128i codes, float *out) const {
    constexpr __mmask16 kAll = -1;
    put(out, _mm512_maskz_permutexvar_epi32(
                 kAll, _mm512_maskz_cvtepu8_epi32(kAll, codes), table));
  }
  void find(const Codes32 &codes, float *out) const {
    findSixteen(codes.first, out);
    findSixteen(codes.second, out + 16);
  }
  template <typename T> void find(const Codes32 &codes, T *out) const {
    put(out,
        _mm512_permutexvar_epi16(_mm512_cvtepu8_epi16(codes.both()), table));
  }
};

#elif defined(__AVX2__)

/// Two tables: of floats the first and the last eight values, of halves the low
/// and the high bytes.
struct Lookup {
  __m256i first, second;

  static __m256i get(const void *from) {
    return _mm256_load_si256(static_cast<const __m256i *>(from));
  }
  explicit Lookup(const BlockValues<float> &values)
      : first(get(values.value)), second(get(values.value + 8)) {}
  template <typename T> explicit Lookup(const BlockValues<T> &values) {
    const __m256i all = get(values.value), low = _mm256_set1_epi16(0xff);
    // A pack joins the halves of each lane; a permutation gives both lanes all.
    const auto bytes = [](__m256i x) {
      return _mm256_permute4x64_epi64(_mm256_packus_epi16(x, x),
                                      _MM_SHUFFLE(2, 0, 2, 0));
    };
    first = bytes(_mm256_and_si256(all, low));
    second = bytes(_mm256_srli_epi16(all, 8));
  }

  static void put(void *out, __m256i values) {
    _mm256_storeu_si256(static_cast<__m256i *>(out), values);
  }
  void findEight(__m128i codes, float *out) const {
    const __m256i at = _mm256_cvtepu8_epi32(codes);
    const __m256 low = _mm256_permutevar8x32_ps(_mm256_castsi256_ps(first), at);
    const __m256 high =
        _mm256_permutevar8x32_ps(_mm256_castsi256_ps(second), at);
    // Bit 3 of the code, as a sign, chooses.
    const __m256 isHigh = _mm256_castsi256_ps(_mm256_slli_epi32(at, 28));
    _mm256_storeu_ps(out, _mm256_blendv_ps(low, high, isHigh));
  }
  void find(const Codes32 &codes, float *out) const {
    findEight(codes.first, out);
    findEight(_mm_srli_si128(codes.first, 8), out + 8);
    findEight(codes.second, out + 16);
    findEight(_mm_srli_si128(codes.second, 8), out + 24);
  }
  template <typename T> void find(const Codes32 &codes, T *out) const {
    const __m256i at = codes.both();
    const __m256i low = _mm256_shuffle_epi8(first, at);
    const __m256i high = _mm256_shuffle_epi8(second, at);
    // Elements 0..7 and 16..23, and 8..15 and 24..31.
    const __m256i even = _mm256_unpacklo_epi8(low, high);
    const __m256i odd = _mm256_unpackhi_epi8(low, high);
    put(out, _mm256_permute2x128_si256(even, odd, 0x20));
    put(out + 16, _mm256_permute2x128_si256(even, odd, 0x31));
  }
};

#endif

/// Elements [from, to) of the block at `packed`.
template <typename T>
void decodePart(const BlockValues<T> &values, const uint8_t *packed,
                int64_t from, int64_t to, T *out) {
#ifdef __AVX2__
  // Products read half a block at a time, and a quarter.
  constexpr int64_t kHalf = kBlock / 2;
  if (from % kHalf + (to - from) <= kHalf) {
    const int64_t first = from / kHalf * kHalf;
    alignas(64) T half[kHalf];
    Lookup(values).find(Codes32(packed + first / 2), half);
    std::copy(half + (from - first), half + (to - first), out);
    return;
  }
#endif
  for (int64_t i = from; i < to; ++i)
    out[i - from] = values.value[codeAt(packed, i)];
}

template <typename T>
void decodeBlock(const BlockValues<T> &values, const uint8_t *packed, T *out) {
#ifdef __AVX2__
  const Lookup lookup(values);
  lookup.find(Codes32(packed), out);
  lookup.find(Codes32(packed + kBlock / 4), out + kBlock / 2);
#else
  decodePart(values, packed, 0, kBlock, out);
#endif
}

} // namespace

template <typename T>
void decode(const Nf4 &stored, int64_t begin, int64_t count, T *out) {
  const int64_t end = begin + count;
  for (int64_t at = begin; at < end;) {
    const int64_t block = at / kBlock, first = block * kBlock;
    const int64_t until = std::min(end, first + kBlock);
    const BlockValues<T> values(stored.maxima.of(block));
    const uint8_t *packed = stored.codes + first / 2;
    if (until - at == kBlock)
      decodeBlock(values, packed, out);
    else
      decodePart(values, packed, at - first, until - first, out);
    out += until - at;
    at = until;
  }
}

/// 8-bit integers as floats. By intrinsics: g++ 12 converts a vector of bytes
/// one by one.
static Floats<kLanes> loadCodes(const int8_t *from) {
#ifdef __AVX512F__
  constexpr __mmask16 kAll = -1;
  const __m128i bytes =
      _mm_loadu_si128(reinterpret_cast<const __m128i *>(from));
  return _mm512_maskz_cvtepi32_ps(kAll,
                                  _mm512_maskz_cvtepi8_epi32(kAll, bytes));
#elif defined(__AVX2__)
  const __m128i bytes =
      _mm_loadl_epi64(reinterpret_cast<const __m128i *>(from));
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
#else
  return convert<float>(loadLanes<kLanes>(from));
#endif
}

template <typename T>
void decodeRow(const int8_t *codes, int64_t count, float absmax, T *out) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    storeLanes<kLanes>(out + i, loadCodes(codes + i) * absmax * kPerCode);
  for (; i < count; ++i)
    storeLanes<1>(out + i, rowValue(codes[i], absmax));
}

template <typename T>
void decode(const Stored &stored, int64_t begin, int64_t count, T *out) {
  if (!stored.columns)
    return decode(stored.nf4, begin, count, out);
  decodeRow(stored.codes + begin, count, stored.absmax[begin / stored.columns],
            out);
}

#define TMC_FROZEN_TYPE(T)                                                     \
  template void encode(const T *, int64_t, uint8_t *, float *);                \
  template void decode(const Nf4 &, int64_t, int64_t, T *);                    \
  template void decode(const Stored &, int64_t, int64_t, T *);                 \
  template float rowAbsmax(const T *, int64_t, float);                         \
  template void encodeRow(const T *, int64_t, float, int8_t *);                \
  template void decodeRow(const int8_t *, int64_t, float, T *);
TMC_FROZEN_TYPE(float)
TMC_FROZEN_TYPE(bf16)
TMC_FROZEN_TYPE(f16)
#undef TMC_FROZEN_TYPE

} // namespace tmc::frozen
