// SPDX-License-Identifier: Apache-2.0
#pragma once
// A server of a test in a process of its own: it prints its port on one line and ends when its
// input does.

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

extern char** environ;

namespace weft::testing {

struct ServerProcess {
  explicit ServerProcess(std::string path) {
    int in[2], out[2];
    if (::pipe(in) || ::pipe(out)) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    for (int fd : {in[0], in[1], out[0], out[1]}) posix_spawn_file_actions_addclose(&actions, fd);
    char* argv[] = {path.data(), nullptr};
    if (posix_spawn(&pid, path.c_str(), &actions, nullptr, argv, environ)) pid = 0;
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    input = in[1];
    std::string text;
    for (char c; ::read(out[0], &c, 1) == 1 && c != '\n';) text += c;
    ::close(out[0]);
    port = text.empty() ? 0 : std::stoi(text);
  }
  ~ServerProcess() {
    ::close(input);
    if (pid) {
      ::kill(pid, SIGKILL);  // a stopped one would not see its input end
      ::waitpid(pid, nullptr, 0);
    }
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  pid_t pid = 0;  // 0: it could not be started
  int input = -1, port = 0;
};

}  // namespace weft::testing
