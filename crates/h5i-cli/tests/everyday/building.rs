//! Compilers, build tools, language runtimes.

use h5i_testkit::{Need, have};

use crate::table::{NODE, PYTHON, prints};

#[test]
fn make_runs_jobs_side_by_side() {
    let rows = [(
        "cd /tmp && printf 'all: a b c d\\na b c d:\\n\\t@touch $@.on; while [ $$(ls *.on | wc -l) -lt 4 ]; do :; done; echo $@\\n' > M \
         && make -s -j4 -f M | sort | tr -d '\\n'",
        "abcd",
    )];
    prints("make_runs_jobs_side_by_side", "/bin/bash", &rows);
}

#[test]
fn a_compiler_makes_a_program_that_runs() {
    let rows =
        [("cd /work && echo 'int main(){return 42;}' > x.c && cc x.c -o x && ./x; echo $?", "42")];
    prints("a_compiler_makes_a_program_that_runs", "/bin/bash", &rows);
}

#[test]
fn a_compiler_cache_remembers_what_was_compiled() {
    let rows = [(
        "mkdir -p /tmp/c && cd /tmp/c && echo 'int main(){return 0;}' > x.c && ccache -z >/dev/null && \
         for i in 1 2; do ccache cc -c x.c -o x.o; done && \
         ccache --print-stats | grep -c -E '^(cache_miss|direct_cache_hit)[[:space:]]1$'",
        "2",
    )];
    if have("a_compiler_cache_remembers_what_was_compiled", Need::Program("/usr/bin/ccache")) {
        prints("a_compiler_cache_remembers_what_was_compiled", "/bin/bash", &rows);
    }
}

#[test]
fn tests_of_python_run_side_by_side() {
    let rows = [(
        "mkdir -p /tmp/t && cd /tmp/t && printf 'def test_a(): pass\n\ndef test_b(): pass\n' > test_x.py && \
         python3 -m pytest -q -n 2 -p no:cacheprovider | grep -o '2 passed'",
        "2 passed",
    )];
    if have("tests_of_python_run_side_by_side", Need::Program("/usr/bin/py.test-3")) {
        prints("tests_of_python_run_side_by_side", "/bin/bash", &rows);
    }
}

#[test]
fn a_python_environment_can_be_made_and_moved_into() {
    let rows = [(
        "python3 -m venv --without-pip /work/v && . /work/v/bin/activate && \
         python -c 'import sys; print(sys.prefix)'",
        "/work/v",
    )];
    if have("a_python_environment_can_be_made", Need::Program(PYTHON)) {
        prints("a_python_environment_can_be_made_and_moved_into", "/bin/bash", &rows);
    }
}

#[test]
fn python_has_processes_locks_shared_memory_and_coroutines() {
    let rows = [
        ("import multiprocessing as m\nwith m.Pool(2) as p: print(p.map(abs, [-1, 2]))", "[1, 2]"),
        ("import multiprocessing as m\nwith m.Lock(): print('held')", "held"),
        (
            "from multiprocessing import shared_memory as s\nx = s.SharedMemory(create=True, size=9)\n\
             x.buf[0] = 7\nprint(x.buf[0])\nx.close(); x.unlink()",
            "7",
        ),
        (
            "import asyncio\nasync def main():\n  p = await asyncio.create_subprocess_exec('echo', 'sub')\n  \
             await p.wait()\n  s = await asyncio.start_server(lambda r, w: w.close(), '127.0.0.1', 0)\n  \
             r, w = await asyncio.open_connection(*s.sockets[0].getsockname())\n  print(await r.read())\nasyncio.run(main())",
            "sub\nb''",
        ),
    ];
    prints("python_has_processes_locks_shared_memory_and_coroutines", PYTHON, &rows);
}

#[test]
fn node_has_children_workers_and_servers() {
    let rows = [
        (
            "if (process.send) process.send('child'); else require('child_process')\
             .fork(process.argv[1] ?? '', [], {execArgv: ['-e', 'process.send(\"child\")']})\
             .on('message', m => console.log(m))",
            "child",
        ),
        (
            "const {Worker} = require('worker_threads'); new Worker('require(\"worker_threads\")\
             .parentPort.postMessage(7)', {eval: true}).on('message', m => console.log(m))",
            "7",
        ),
        (
            "const s = require('http').createServer((q, r) => r.end('served')).listen(0, () => \
             fetch('http://localhost:' + s.address().port).then(r => r.text()).then(t => { console.log(t); s.close(); \
             s.closeAllConnections(); }))",
            "served",
        ),
        (
            "const o = require('os'); console.log(o.cpus().length > 0, o.userInfo().username, o.totalmem() > 0)",
            "true box true",
        ),
    ];
    prints("node_has_children_workers_and_servers", NODE, &rows);
}
