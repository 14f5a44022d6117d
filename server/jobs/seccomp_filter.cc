#include "server/jobs/seccomp_filter.h"

#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>

#include "base/status.h"
#include "server/jobs/child_process.h"

namespace mendel::server {
namespace {

constexpr std::array kForbidden = {
    // Network, and sockets of any kind.
    SCMP_SYS(socket),
    SCMP_SYS(socketpair),
    SCMP_SYS(connect),
    SCMP_SYS(bind),
    SCMP_SYS(listen),
    SCMP_SYS(accept),
    SCMP_SYS(accept4),
    SCMP_SYS(sendto),
    SCMP_SYS(sendmsg),
    SCMP_SYS(sendmmsg),
    // Other processes.
    SCMP_SYS(fork),
    SCMP_SYS(vfork),
    SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(kcmp),
    SCMP_SYS(pidfd_open),
    SCMP_SYS(pidfd_getfd),
    SCMP_SYS(pidfd_send_signal),
    SCMP_SYS(process_madvise),
    SCMP_SYS(migrate_pages),
    SCMP_SYS(move_pages),
    SCMP_SYS(rt_sigqueueinfo),
    SCMP_SYS(rt_tgsigqueueinfo),
    SCMP_SYS(tkill),
    // Files by other ways than their path and mode.
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(name_to_handle_at),
    SCMP_SYS(mknod),
    SCMP_SYS(mknodat),
    SCMP_SYS(truncate),
    SCMP_SYS(acct),
    SCMP_SYS(setxattr),
    SCMP_SYS(fsetxattr),
    SCMP_SYS(lsetxattr),
    SCMP_SYS(quotactl),
    SCMP_SYS(fanotify_init),
    // Namespaces, mounts, privileges.
    SCMP_SYS(mount),
    SCMP_SYS(umount2),
    SCMP_SYS(pivot_root),
    SCMP_SYS(chroot),
    SCMP_SYS(setns),
    SCMP_SYS(unshare),
    SCMP_SYS(fsopen),
    SCMP_SYS(fsconfig),
    SCMP_SYS(fsmount),
    SCMP_SYS(fspick),
    SCMP_SYS(open_tree),
    SCMP_SYS(move_mount),
    SCMP_SYS(mount_setattr),
    SCMP_SYS(setuid),
    SCMP_SYS(setgid),
    SCMP_SYS(setresuid),
    SCMP_SYS(setresgid),
    SCMP_SYS(setreuid),
    SCMP_SYS(setregid),
    SCMP_SYS(setgroups),
    SCMP_SYS(capset),
    SCMP_SYS(personality),
    // The kernel.
    SCMP_SYS(bpf),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(io_uring_enter),
    SCMP_SYS(io_uring_register),
    SCMP_SYS(keyctl),
    SCMP_SYS(add_key),
    SCMP_SYS(request_key),
    SCMP_SYS(init_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(delete_module),
    SCMP_SYS(kexec_load),
    SCMP_SYS(kexec_file_load),
    SCMP_SYS(reboot),
    SCMP_SYS(swapon),
    SCMP_SYS(swapoff),
    SCMP_SYS(syslog),
    SCMP_SYS(settimeofday),
    SCMP_SYS(clock_settime),
    SCMP_SYS(adjtimex),
    SCMP_SYS(clock_adjtime),
    SCMP_SYS(sethostname),
    SCMP_SYS(setdomainname),
    SCMP_SYS(iopl),
    SCMP_SYS(ioperm),
    SCMP_SYS(lookup_dcookie),
    SCMP_SYS(vhangup),
    SCMP_SYS(nfsservctl),
    SCMP_SYS(modify_ldt),
};

using Filter = std::unique_ptr<void, decltype(&seccomp_release)>;

/// 0 or a negative error. Unknown calls of other architectures count as forbidden already.
int AddRules(void* filter, bool alone) {
  int result = 0;
  const auto add = [&](int error, int call, unsigned count = 0, scmp_arg_cmp argument = {}) {
    const int one = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(static_cast<unsigned>(error)),
                                           call, count, &argument);
    if (one < 0 && one != -EDOM && result == 0) result = one;
  };
  for (const int call : kForbidden) add(EPERM, call);
  add(ENOSYS, SCMP_SYS(clone3));
  add(EPERM, SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
  add(EPERM, SCMP_SYS(prlimit64), 1, SCMP_A0(SCMP_CMP_NE, 0, 0));
  // No commands from a keyboard that somebody else sits at.
  add(EPERM, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, 0x5412));
  if (!alone) {
    add(EPERM, SCMP_SYS(kill));
    add(EPERM, SCMP_SYS(tgkill), 1, SCMP_A0(SCMP_CMP_NE, kOwnPid, 0));
  }
  return result;
}

}  // namespace

absl::StatusOr<std::vector<sock_filter>> WorkerFilter(bool alone) {
  const Filter filter(seccomp_init(SCMP_ACT_ALLOW), &seccomp_release);
  if (filter == nullptr) return InternalError("seccomp: no filter");
  if (const int result = AddRules(filter.get(), alone); result < 0)
    return absl::ErrnoToStatus(-result, "seccomp: a rule was refused");
  const Descriptor file(memfd_create("filter", MFD_CLOEXEC));
  if (!file || seccomp_export_bpf(filter.get(), file.get()) != 0)
    return InternalError("seccomp: the filter cannot be written");
  std::vector<sock_filter> program(static_cast<size_t>(lseek(file.get(), 0, SEEK_END)) /
                                   sizeof(sock_filter));
  const size_t bytes = program.size() * sizeof(sock_filter);
  if (pread(file.get(), program.data(), bytes, 0) != static_cast<ssize_t>(bytes))
    return InternalError("seccomp: the filter cannot be read");
  return program;
}

}  // namespace mendel::server
