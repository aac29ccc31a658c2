// SPDX-License-Identifier: Apache-2.0
// Parts of gRPC that its start-up registers and remote devices never use: xDS, load balancing over
// several servers, injected faults. A module that links gRPC's archives defines their registrations
// itself, empty, so that the linker leaves the parts out (a sixth of the module and the library
// re2). One that a version of gRPC lacks is a function that nobody calls.

namespace grpc_core {

class CoreConfiguration {
 public:
  class Builder;
};

void RegisterExtraFilters(CoreConfiguration::Builder* /*unused*/) {}
void RegisterGrpcLbPolicy(CoreConfiguration::Builder* /*unused*/) {}
void RegisterRlsLbPolicy(CoreConfiguration::Builder* /*unused*/) {}
void RegisterRingHashLbPolicy(CoreConfiguration::Builder* /*unused*/) {}
void RegisterOutlierDetectionLbPolicy(CoreConfiguration::Builder* /*unused*/) {}
void RegisterWeightedTargetLbPolicy(CoreConfiguration::Builder* /*unused*/) {}
void RegisterPriorityLbPolicy(CoreConfiguration::Builder* /*unused*/) {}
void RegisterRoundRobinLbPolicy(CoreConfiguration::Builder* /*unused*/) {}
void FaultInjectionFilterRegister(CoreConfiguration::Builder* /*unused*/) {}
void RegisterFakeResolver(CoreConfiguration::Builder* /*unused*/) {}

}  // namespace grpc_core
