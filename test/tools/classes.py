"""What classes.py counts, on sources that try to mislead it: classes.py TOOLS."""

import sys

sys.path.insert(0, sys.argv[1])
import classes

COUNTS = """
class Six final : public Base<Other(int)> {
public:
  explicit Six(int a, std::vector<int> b = {}) : a{a}, b{std::move(b)} {}
  Six(const Six &) = delete;
  ~Six() override = default;
  static Six of(std::function<void(int)> f); // not(this)
  template <typename T> T get() const { return T(a); }
  bool operator()(int x) const { return x == "};"[0]; }
  friend bool operator==(const Six &, const Six &);
  std::function<int(int)> stored = [](int x) { return twice(x); };
  int braced{f(1)}, equal = g(2);
  using Fn = void (*)(int);
  struct Inner {
    void one();
    void two() { for (;;) call(); }
  };
  enum class Kind { A, B };
  [[nodiscard]] const std::map<int, std::pair<int, int>> &map() const {
    return held;
  }
#define NOT_COUNTED(x) void x()

private:
  void last(
      int x);
  int a;
};
enum class None { A };
class Declared;
"""


def main():
    found = {name: count for _, name, count in classes.classes(COUNTS)}
    assert found == {"Six": 6, "Inner": 2}, found
    functions = "".join("  void f%d();\n" % i for i in range(classes.MOST_FUNCTIONS))
    assert classes.too_many("F.h", "class C {\n%s};\n" % functions) == []
    planted = classes.too_many("F.h", "\nclass C {\n%s  int one() const;\n};\n" % functions)
    assert planted == ["F.h:2: C has 26 functions, at most 25"], planted
    print("classes.py counts what is there")


if __name__ == "__main__":
    main()
