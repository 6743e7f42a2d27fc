//===- HubTest.cpp - rank 0's tables, without sockets ---------------------===//

#include "runtime/network/Hub.h"

#include "gtest/gtest.h"

namespace tmc {
namespace {

struct HubTest : ::testing::Test {
  std::vector<std::string> answers; // "rank kind name bytes"
  Hub hub{2, [this](int rank, const std::string &bytes) {
            FrameReader reader(
                std::string_view(bytes).substr(kFrameHeaderBytes));
            std::string text =
                std::to_string(rank) + " " + std::to_string(int(bytes[4]));
            if (FrameKind(bytes[4]) == FrameKind::Value) {
              text += " " + reader.text();
              text += " " + reader.text();
            }
            if (FrameKind(bytes[4]) == FrameKind::Met)
              text += " " + std::to_string(int64_t(reader.number64()));
            answers.push_back(text);
          }};

  std::string give(int rank, const std::string &bytes) {
    return hub.handle(rank,
                      {FrameKind(bytes[4]), bytes.substr(kFrameHeaderBytes)});
  }
  std::string put(int rank, const char *name, const char *bytes) {
    return give(rank,
                FrameWriter(FrameKind::Put).text(name).text(bytes).finish());
  }
  std::string get(int rank, const char *name) {
    return give(rank, FrameWriter(FrameKind::Get).text(name).finish());
  }
  std::string meet(int rank, const char *name, int64_t number) {
    return give(rank, FrameWriter(FrameKind::Meet)
                          .text(name)
                          .number64(uint64_t(number))
                          .finish());
  }
  std::string taken() {
    std::string all;
    for (const std::string &each : answers)
      all += (all.empty() ? "" : ", ") + each;
    answers.clear();
    return all;
  }
};

TEST_F(HubTest, AValueComesNowOrLater) {
  EXPECT_EQ(get(1, "a"), "");
  EXPECT_EQ(taken(), "");
  EXPECT_EQ(put(0, "a", "x"), "");
  EXPECT_EQ(taken(), "1 7 a x");
  EXPECT_EQ(get(0, "a"), "");
  EXPECT_EQ(taken(), "0 7 a x");
  EXPECT_EQ(put(1, "a", "y"), "puts 'a', which is there");
}

TEST_F(HubTest, AMeetingEndsWhenAllHaveCome) {
  for (const int64_t number : {-7, 5}) {
    EXPECT_EQ(meet(1, "save", number), "");
    EXPECT_EQ(taken(), "");
    EXPECT_EQ(meet(0, "save", -6), "");
    const std::string met = std::to_string(std::max<int64_t>(number, -6));
    EXPECT_EQ(taken(), "0 9 " + met + ", 1 9 " + met);
  }
}

TEST_F(HubTest, AMeetingHasOneName) {
  EXPECT_EQ(meet(1, "save 40", 0), "");
  EXPECT_EQ(meet(1, "save 40", 0), "comes twice to the meeting 'save 40'");
  EXPECT_EQ(meet(0, "end", 0),
            "comes to the meeting 'end', and others to 'save 40'");
}

TEST_F(HubTest, TheEndComesForAll) {
  EXPECT_EQ(give(1, FrameWriter(FrameKind::Bye).finish()), "");
  EXPECT_EQ(taken(), "");
  EXPECT_EQ(give(0, FrameWriter(FrameKind::Bye).finish()), "");
  EXPECT_EQ(taken(), "0 12, 1 12");
}

TEST_F(HubTest, MalformedMessages) {
  const std::string malformed = "sends a malformed message";
  EXPECT_EQ(hub.handle(1, {FrameKind::Get, "\5"}), malformed);
  EXPECT_EQ(hub.handle(1, {FrameKind::Put, std::string(9, '\0')}), malformed);
  EXPECT_EQ(hub.handle(1, {FrameKind::Meet, std::string(4, '\0')}), malformed);
  EXPECT_EQ(hub.handle(1, {FrameKind::Bye, "x"}), malformed);
  EXPECT_EQ(hub.handle(1, {FrameKind::Hello, ""}),
            "sends a message that no rank may send");
  EXPECT_EQ(hub.handle(1, {FrameKind::Verdict, ""}),
            "sends a message that no rank may send");
  EXPECT_EQ(taken(), "");
}

} // namespace
} // namespace tmc
