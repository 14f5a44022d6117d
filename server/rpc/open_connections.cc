#include "server/rpc/open_connections.h"

namespace mendel::server {

bool OpenConnections::Add(const std::string& client, int descriptor) {
  Forget(descriptor);  // the number is free again: whoever had it is gone
  if (client.empty()) return true;
  if (by_client_[client].size() >= per_client_) ForgetClosed(client);
  std::set<int>& own = by_client_[client];
  if (own.size() >= per_client_) return false;
  struct stat facts {};
  if (fstat(descriptor, &facts) != 0) return true;
  own.insert(descriptor);
  connections_[descriptor] = {client, facts.st_dev, facts.st_ino};
  return true;
}

void OpenConnections::Forget(int descriptor) {
  const auto found = connections_.find(descriptor);
  if (found == connections_.end()) return;
  const auto own = by_client_.find(found->second.client);
  own->second.erase(descriptor);
  if (own->second.empty()) by_client_.erase(own);
  connections_.erase(found);
}

void OpenConnections::ForgetClosed(const std::string& client) {
  const std::set<int> own = by_client_[client];
  for (const int descriptor : own) {
    const Connection& known = connections_[descriptor];
    struct stat facts {};
    const bool same = fstat(descriptor, &facts) == 0 && facts.st_dev == known.device &&
                      facts.st_ino == known.socket;
    if (!same) Forget(descriptor);
  }
}

}  // namespace mendel::server
