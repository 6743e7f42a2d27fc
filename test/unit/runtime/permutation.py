"""The order of samples that runtime/step/Permutation.h defines, in Python integers: the numbers of DataEpochTest.cpp.

    python3 permutation.py
"""

M = 0xFFFFFFFF


def philox(c, k):
    c, k = list(c), list(k)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [p1 >> 32 ^ c[1] ^ k[0], p1 & M, p0 >> 32 ^ c[3] ^ k[1], p0 & M]
        k = [k[0] + 0x9E3779B9 & M, k[1] + 0xBB67AE85 & M]
    return c


def order(seed, epoch, n):
    key = (seed & M, seed >> 32)
    sums = []
    for r in range(90):
        w = philox((0, 0, 0x6b657900 + r, epoch), key)
        sums.append((w[0] | w[1] << 32) * n >> 64)

    def at(x):
        for r in range(90):
            y = (sums[r] - x) % n
            m = max(x, y)
            if philox((m & M, m >> 32, 0x62697400 + r, epoch), key)[0] & 1:
                x = y
        return x

    return at

if __name__ == "__main__":
    for seed, epoch, n in ((0, 0, 1), (1, 0, 2), (7, 0, 10), (7, 1, 10), (2**40 + 5, 3, 13)):
        print(seed, epoch, n, [order(seed, epoch, n)(i) for i in range(n)])
    at = order(7, 0, 1000)
    whole = [at(i) for i in range(1000)]
    assert sorted(whole) == list(range(1000))
    print(whole[:8])
    at = order(2**63 + 9, 2**32 - 1, 10**12)
    print([at(i) for i in (0, 1, 2, 10**12 - 1)])
