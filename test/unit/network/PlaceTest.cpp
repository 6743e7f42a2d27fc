//===- PlaceTest.cpp - environments of launchers, replayed ----------------===//

#include "runtime/network/Place.h"
#include "runtime/kernels/Mesh.h"

#include "gtest/gtest.h"

#include <map>

namespace tmc {
namespace {

using Environment = std::map<std::string, std::string>;

Status find(const Environment &environment, Place &place) {
  return findPlace(
      [&](const char *name) -> const char * {
        const auto at = environment.find(name);
        return at == environment.end() ? nullptr : at->second.c_str();
      },
      place);
}

Place found(const Environment &environment) {
  Place place;
  const Status done = find(environment, place);
  EXPECT_TRUE(done) << done.message();
  return place;
}

std::string refused(const Environment &environment) {
  Place place;
  const Status done = find(environment, place);
  EXPECT_EQ(done.code(), Code::Usage) << done.message();
  return done.message();
}

TEST(Place, NoLauncherIsAWorldOfOneRank) {
  const Place place = found({{"PATH", "/bin"}});
  EXPECT_EQ(place.rank, 0);
  EXPECT_EQ(place.ranks, 1);
  EXPECT_EQ(place.launcher, "");
}

TEST(Place, Torchrun) {
  const Place place = found({{"RANK", "5"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "node1"},
                             {"MASTER_PORT", "29500"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  EXPECT_EQ(place.rank, 5);
  EXPECT_EQ(place.ranks, 8);
  EXPECT_EQ(place.localRank, 1);
  EXPECT_EQ(place.localRanks, 4);
  EXPECT_EQ(place.host, "node1");
  EXPECT_EQ(place.port, 29501); // the agent has 29500
  EXPECT_EQ(place.launcher, "torchrun");
}

TEST(Place, AnAddressOfOnesOwnWins) {
  Place place = found({{"RANK", "0"},
                       {"WORLD_SIZE", "2"},
                       {"MASTER_ADDR", "node1"},
                       {"MASTER_PORT", "29500"},
                       {"TMC_ADDRESS", "[fe80::1]:7000"}});
  EXPECT_EQ(place.host, "fe80::1");
  EXPECT_EQ(place.port, 7000);
  place = found({{"TMC_RANK", "1"},
                 {"TMC_RANKS", "2"},
                 {"TMC_ADDRESS", "10.0.0.1:65535"}});
  EXPECT_EQ(place.host, "10.0.0.1");
  EXPECT_EQ(place.port, 65535);
}

TEST(Place, MpirunOfOpenMpi) {
  const Place place = found({{"OMPI_COMM_WORLD_RANK", "3"},
                             {"OMPI_COMM_WORLD_SIZE", "4"},
                             {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                             {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                             {"PMIX_RANK", "3"}});
  EXPECT_EQ(place.rank, 3);
  EXPECT_EQ(place.ranks, 4);
  EXPECT_EQ(place.localRank, 1);
  EXPECT_EQ(place.host, ""); // MPI says it
}

TEST(Place, MpirunWithinAJobOfSlurm) {
  // srun started one daemon for each host, and its variables count daemons.
  const Place place = found({{"OMPI_COMM_WORLD_RANK", "3"},
                             {"OMPI_COMM_WORLD_SIZE", "4"},
                             {"SLURM_PROCID", "1"},
                             {"SLURM_NTASKS", "2"},
                             {"SLURM_JOB_NODELIST", "a[1-2]"}});
  EXPECT_EQ(place.rank, 3);
  EXPECT_EQ(place.ranks, 4);
  EXPECT_EQ(place.launcher, "Open MPI");
  EXPECT_EQ(place.host, "");
}

TEST(Place, HydraOfMpich) {
  const Place place = found({{"PMI_RANK", "1"},
                             {"PMI_SIZE", "2"},
                             {"MPI_LOCALRANKID", "0"},
                             {"MPI_LOCALNRANKS", "1"}});
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.ranks, 2);
  EXPECT_EQ(place.launcher, "Hydra");
}

TEST(Place, Srun) {
  Environment environment = {
      {"SLURM_PROCID", "2"},  {"SLURM_NTASKS", "4"},
      {"SLURM_LOCALID", "0"}, {"SLURM_JOB_ID", "1234"},
      {"SLURM_STEP_ID", "1"}, {"SLURM_JOB_NODELIST", "gpu-a[07-09,12],b1"}};
  Place place = found(environment);
  EXPECT_EQ(place.rank, 2);
  EXPECT_EQ(place.ranks, 4);
  EXPECT_EQ(place.host, "gpu-a07");
  EXPECT_EQ(place.port, 20000 + (1234 * 16 + 1) % 10000);
  // PMIx says the rank again, and not the size.
  environment["PMIX_RANK"] = "2";
  EXPECT_EQ(found(environment).ranks, 4);
  environment["PMIX_RANK"] = "1";
  EXPECT_EQ(refused(environment), "PMIX_RANK='1' contradicts SLURM_PROCID='2'");
}

TEST(Place, AScriptOfSlurmIsNoRank) {
  EXPECT_EQ(found({{"SLURM_NTASKS", "4"}}).ranks, 1);
}

TEST(Place, AJobOfKubernetes) {
  const Place place = found({{"JOB_COMPLETION_INDEX", "1"},
                             {"TMC_RANKS", "2"},
                             {"TMC_ADDRESS", "train-0.train:7000"}});
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.ranks, 2);
  EXPECT_EQ(place.host, "train-0.train");
  EXPECT_EQ(found({{"JOB_COMPLETION_INDEX", "1"}}).ranks, 1);
}

TEST(Place, Contradictions) {
  EXPECT_EQ(refused({{"RANK", "1"},
                     {"WORLD_SIZE", "2"},
                     {"OMPI_COMM_WORLD_RANK", "0"},
                     {"OMPI_COMM_WORLD_SIZE", "2"}}),
            "RANK='1' contradicts OMPI_COMM_WORLD_RANK='0'");
  EXPECT_EQ(refused({{"RANK", "1"},
                     {"WORLD_SIZE", "8"},
                     {"PMI_RANK", "1"},
                     {"PMI_SIZE", "2"}}),
            "WORLD_SIZE='8' contradicts PMI_SIZE='2'");
}

TEST(Place, WrongValues) {
  EXPECT_EQ(refused({{"RANK", "1"}}),
            "RANK='1' says which rank this is, and no variable how many there "
            "are");
  EXPECT_EQ(refused({{"WORLD_SIZE", "2"}}),
            "WORLD_SIZE='2' says how many ranks there are, and no variable "
            "which one this is");
  EXPECT_EQ(refused({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
            "RANK='2' isn't below WORLD_SIZE='2': ranks count from 0");
  EXPECT_EQ(refused({{"RANK", "0"}, {"WORLD_SIZE", "0"}}),
            "RANK='0' isn't below WORLD_SIZE='0': ranks count from 0");
  EXPECT_EQ(refused({{"RANK", "0"},
                     {"WORLD_SIZE", "2"},
                     {"LOCAL_RANK", "1"},
                     {"LOCAL_WORLD_SIZE", "1"}}),
            "LOCAL_RANK='1' isn't below LOCAL_WORLD_SIZE='1': ranks count from "
            "0");
  EXPECT_EQ(
      refused({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "3"}}),
      "LOCAL_WORLD_SIZE='3' is more than WORLD_SIZE='2'");
  for (const char *wrong : {"x", "-1", "1 ", "+1", "0x1", "65537",
                            "18446744073709551616", "4294967297"})
    EXPECT_EQ(refused({{"RANK", wrong}, {"WORLD_SIZE", "2"}}),
              "RANK='" + std::string(wrong) + "' is no number of 0 to 65536");
}

TEST(Place, WrongAddresses) {
  const Environment ranks = {{"RANK", "0"}, {"WORLD_SIZE", "2"}};
  const auto with = [&](Environment more) {
    more.insert(ranks.begin(), ranks.end());
    return refused(more);
  };
  for (const char *wrong : {"host", ":1", "host:", "host:0", "host:65536",
                            "a:b:1", "[]:1", "host:1x"})
    EXPECT_EQ(with({{"TMC_ADDRESS", wrong}}),
              "TMC_ADDRESS='" + std::string(wrong) + "' isn't HOST:PORT");
  EXPECT_EQ(with({{"MASTER_ADDR", "a"}}), "MASTER_ADDR='a' has no MASTER_PORT");
  EXPECT_EQ(with({{"MASTER_ADDR", "a"}, {"MASTER_PORT", "65535"}}),
            "MASTER_PORT='65535' is no port of 1 to 65534");
  EXPECT_EQ(refused({{"SLURM_PROCID", "0"},
                     {"SLURM_NTASKS", "1"},
                     {"SLURM_JOB_NODELIST", "a["}}),
            "SLURM_JOB_NODELIST='a[' is no list of hosts");
}

TEST(Place, FirstHosts) {
  EXPECT_EQ(firstHost("a1,b2"), "a1");
  EXPECT_EQ(firstHost("n[3]"), "n3");
  EXPECT_EQ(firstHost("rack[1-2]node[05,7]"), "rack1node05");
  EXPECT_EQ(firstHost("n[x]"), "");
  EXPECT_EQ(firstHost(""), "");
}

TEST(Mesh, GroupsOfAnAxis) {
  const Mesh mesh{2, 2, 2}; // rank = (pp * 2 + dp) * 2 + tp
  EXPECT_EQ(mesh.ranks(), 8);
  EXPECT_EQ(mesh.group(Axis::Tensor, 5), (std::vector<int>{4, 5}));
  EXPECT_EQ(mesh.group(Axis::Data, 5), (std::vector<int>{5, 7}));
  EXPECT_EQ(mesh.group(Axis::Pipeline, 5), (std::vector<int>{1, 5}));
  EXPECT_EQ(mesh.place(Axis::Data, 6), 1);
  EXPECT_EQ(mesh.text(), "dp=2 tp=2 pp=2");
}

} // namespace
} // namespace tmc
