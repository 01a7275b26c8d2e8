//! What a record says.

use serde::{Deserialize, Serialize};

use super::ByteText;
use super::claim::{Gap, SpoolFault, Stream};
use super::words::{
    CanaryLoss, FlowVerdict, GrantChange, GrantEnd, NetworkChange, Outcome, Unread, is_false,
};
use crate::digest::Digest;

/// What happened; `kind` on the wire, its fields flat beside it. Unknown fields are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Event {
    /// The box was made.
    Create {
        /// Its name.
        name: String,
        /// The base commit, in hex.
        base: String,
        /// The base tree, in hex.
        tree: String,
        /// The tier.
        tier: String,
        /// The profile's name.
        profile: String,
        /// The digest of the resolved policy.
        policy: String,
    },
    /// The box came alive.
    SessionStart {
        /// The digest of the policy that holds.
        policy: String,
    },
    /// The session ended in order.
    SessionEnd,
    /// A run was started.
    RunStart {
        /// Its arguments, bounded and redacted by [`crate::Argv::bounded`].
        argv: Vec<ByteText>,
        /// How many arguments were left out or cut.
        argv_cut: u32,
        /// Its working directory in the box.
        cwd: ByteText,
        /// The tier.
        tier: String,
        /// The digest of the policy that holds for it.
        policy: String,
    },
    /// A run ended.
    RunEnd {
        /// How it ended.
        outcome: Outcome,
        /// The exit code, when it exited.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// The signal, when one ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
        /// The limit that stopped it, by its policy name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<String>,
        /// How much of that limit was used, in the limit's unit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        used: Option<u64>,
        /// How much was allowed, in the limit's unit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        allowed: Option<u64>,
        /// Wall clock, in milliseconds.
        wall_ms: u64,
        /// Processor time of all its processes, in milliseconds.
        cpu_ms: u64,
        /// The largest resident set of one process, in bytes.
        max_rss_bytes: u64,
    },
    /// A budget is spent: written before anything is stopped for it, where it was not the kernel
    /// that did.
    BudgetSpent {
        /// The limit, by its policy name.
        limit: String,
        /// How much of it was used, in the limit's unit.
        used: u64,
        /// How much is allowed, in the limit's unit.
        allowed: u64,
        /// Who took the most, or the run's program, as the box numbers it; 0 when it was gone.
        pid: u32,
        /// Its program, from the host's view; empty when it was gone.
        program: ByteText,
    },
    /// What the policy's `react` says of a violation is done: written before it is.
    Reaction {
        /// What was violated, by its policy name.
        violation: String,
        /// What is done, by its policy name.
        reaction: String,
        /// What happened.
        cause: ByteText,
    },
    /// A system call was refused.
    RefusedCall {
        /// Its name, or `#NUMBER`.
        call: String,
        /// Its scalar arguments; pointers are not followed.
        args: Vec<u64>,
        /// The process, as the box numbers it.
        pid: u32,
        /// The program, from the host's view.
        program: ByteText,
        /// The error that the caller got, by name.
        errno: String,
        /// How often, when equal calls were counted together.
        count: u64,
    },
    /// A process asks for another program: written before it gets it. What it says is what the call
    /// pointed to at that moment.
    ExecAttempt {
        /// The process's number in its session, from 1 and never used again.
        proc: u64,
        /// The process, as the box numbers it.
        pid: u32,
        /// The number of the nearest forebear that is on record; 0 for the box's init.
        parent: u64,
        /// The parent at that time, as the box numbers it; 0 when it was gone.
        ppid: u32,
        /// The path that was passed; for a descriptor what that is.
        path: ByteText,
        /// Its arguments, bounded and redacted by [`crate::Argv::within`].
        argv: Vec<ByteText>,
        /// How many arguments were left out or cut.
        argv_cut: u32,
        /// The working directory in the box.
        cwd: ByteText,
        /// Which of path, argv and cwd could not be read, and are empty therefore.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unread: Vec<Unread>,
        /// There is no descriptor left to hear of the process's end by: one by a signal will be
        /// unknown.
        #[serde(default, skip_serializing_if = "is_false")]
        unwatched: bool,
    },
    /// The attempt before, by the same process, has succeeded: the kernel shows another program.
    Exec {
        /// The process's number in its session.
        proc: u64,
        /// The process, as the box numbers it.
        pid: u32,
        /// The executable by the kernel: for a script its interpreter. Empty where it can't be read.
        exe: ByteText,
        /// How many attempts before that one failed, since the process's last program.
        failed: u32,
    },
    /// A process that made an attempt has ended.
    ProcessEnd {
        /// The process's number in its session.
        proc: u64,
        /// The process, as the box numbers it.
        pid: u32,
        /// The exit code, when it exited. Neither this nor a signal: the kernel did not tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// The signal, when one ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
        /// Time since its first attempt, in milliseconds.
        wall_ms: u64,
        /// Processor time of its own, in milliseconds, where it ended by itself and lived
        /// 20 ms.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cpu_ms: Option<u64>,
        /// Its largest resident set, in bytes, where it ended by itself and lived 20 ms.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_rss_bytes: Option<u64>,
        /// It ended before it was seen whether its last attempt had succeeded.
        #[serde(default, skip_serializing_if = "is_false")]
        unseen: bool,
    },
    /// A flow is let out of the box: written before the host connects anywhere for it.
    FlowStart {
        /// The flow's number in its session. Its end is the next record of that number.
        flow: u64,
        /// `tcp` or `udp`.
        protocol: String,
        /// Where the box wanted to go.
        address: String,
        /// At which port.
        port: u16,
        /// The names that resolved to the address, and are why it is allowed; empty for a rule by
        /// address.
        names: Vec<String>,
        /// The rules that allow it; empty where the network is open.
        rules: Vec<String>,
        /// The process that opened it, by its id in the box, where that is known: of several that
        /// share the connection, the one that the others descend from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<u32>,
        /// Its executable.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        program: Option<ByteText>,
    },
    /// A flow that was let out is over.
    FlowEnd {
        /// The flow's number in its session.
        flow: u64,
        /// The name that the client named in TLS or HTTP; of several requests the last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        named: Option<String>,
        /// Bytes from the box.
        sent: u64,
        /// Bytes to the box.
        received: u64,
        /// From the box's connection to its end, in milliseconds.
        duration_ms: u64,
        /// How it ended.
        verdict: FlowVerdict,
        /// Why it was refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Why the host could not connect, as an errno.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        errno: Option<i32>,
        /// How much of a budget was used, where one ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        used: Option<u64>,
        /// What the budget allowed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        allowed: Option<u64>,
    },
    /// A connection was closed before anything was carried.
    RefusedFlow {
        /// `tcp` or `udp`.
        protocol: String,
        /// Where the box wanted to go; none for a connection to the relay itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        address: Option<String>,
        /// At which port.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
        /// Why.
        reason: String,
        /// The process that opened it, where that is known, as of a flow that was let out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<u32>,
        /// Its executable.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        program: Option<ByteText>,
        /// How much of a budget was used, where one refused it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        used: Option<u64>,
        /// What the budget allowed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        allowed: Option<u64>,
    },
    /// Refused packets to a destination that no rule lists: the first, or how many since that.
    RefusedAddress {
        /// `tcp`, `udp`, `icmp` or `ip-NUMBER`.
        protocol: String,
        /// The address; none for those beyond what is kept apart.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        address: Option<String>,
        /// The port, where the protocol has any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
        /// How many packets; a program that tries again is counted again.
        count: u64,
        /// The process that sent the first one, where it is known; none of those only counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<u32>,
        /// Its executable.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        program: Option<ByteText>,
    },
    /// A name was asked for that no rule lists: the first time, or how often since that.
    RefusedName {
        /// The name, or what stood in its place; none for those beyond what is kept apart.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<ByteText>,
        /// The type of record that was asked for, by its number in the DNS; 0 for several.
        record: u16,
        /// How often.
        count: u64,
        /// The process that asked first, where it is known; none of those only counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<u32>,
        /// Its executable.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        program: Option<ByteText>,
    },
    /// A listed name was looked up on the host: written before the box has the answer.
    Resolved {
        /// The name.
        name: String,
        /// The addresses that the box was given; none when the name could not be resolved.
        addresses: Vec<String>,
        /// Addresses that were kept from it, because they are not public.
        withheld: Vec<String>,
    },
    /// A person changes the network of a session: written before the change.
    NetworkChange {
        /// What is done.
        change: NetworkChange,
        /// The rule; none for a cut.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        /// The digest of the policy that holds from here on, until the session ends.
        policy: String,
    },
    /// A run may use a grant from here on: written before it has the token.
    GrantIssued {
        /// The grant's name in the policy.
        grant: String,
        /// The service's host.
        host: String,
        /// Its port.
        port: u16,
        /// How long it holds at most, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lasts_ms: Option<u64>,
    },
    /// A request passes by a grant: written before anything of it is sent on.
    GrantUse {
        /// The grant's name.
        grant: String,
        /// The request's number in its session. Its end is the next record of that number.
        request: u64,
        /// `reverse` or `intercept`.
        via: String,
        /// The method.
        method: String,
        /// The path without the query; by a grant for git then, after blanks, the service that is
        /// asked for, or the references of a push.
        path: ByteText,
        /// The process that made it, by its id in the box, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<u32>,
        /// Its executable.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        program: Option<ByteText>,
    },
    /// A request that passed is over.
    GrantUseEnd {
        /// The grant's name.
        grant: String,
        /// The request's number in its session.
        request: u64,
        /// The status of the service's answer; none where there was none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// Bytes of its body.
        sent: u64,
        /// Bytes of the answer's body.
        received: u64,
        /// From its first byte to the last of the answer, in milliseconds.
        duration_ms: u64,
        /// How it ended.
        end: GrantEnd,
        /// How often a secret was found in the answer, and covered.
        scrubbed: u64,
    },
    /// Requests to a grant were refused: the first of its kind, or how many came since the last
    /// record of it.
    GrantRefused {
        /// The grant's name.
        grant: String,
        /// Why.
        reason: String,
        /// Method and path, as far as they were understood.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<ByteText>,
        /// The process that made it, by its id in the box, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<u32>,
        /// Its executable.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        program: Option<ByteText>,
        /// How many.
        count: u64,
    },
    /// A grant holds no more, for a run or for all.
    GrantEnded {
        /// The grant's name.
        grant: String,
        /// Why.
        end: GrantEnd,
    },
    /// A person changes a grant of a session: written before the change.
    GrantChange {
        /// The grant's name.
        grant: String,
        /// What is done.
        change: GrantChange,
        /// How much longer it holds, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by_ms: Option<u64>,
    },
    /// What came before did not end in order: the supervisor died or the host went down.
    CutOff {
        /// Bytes of a half-written last line that were moved aside.
        torn_bytes: u64,
        /// Their digest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        torn: Option<Digest>,
    },
    /// A bundle was written.
    Export {
        /// The digest of its `bundle.json`.
        bundle: Digest,
        /// The reviewed tree, in hex.
        tree: String,
    },
    /// A person takes a bundle into a repository; written before anything is done there.
    Apply {
        /// The digest of its `bundle.json`.
        bundle: Digest,
        /// The commit that it is merged with, in hex; none on a branch without one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        onto: Option<String>,
        /// The reference that is made, or none when the working tree is written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<ByteText>,
    },
    /// A remark: of a person or of the host, and in the lane of the box, of the box.
    Note {
        /// The remark.
        text: ByteText,
    },
    /// The box says that a command begins, or, with a status, what came of one.
    ReportedCommand {
        /// The shell, as the box numbers it; 0 when a program reported it.
        shell: u32,
        /// The command's number in its shell.
        number: u64,
        /// The command, redacted.
        command: ByteText,
        /// The program that it names, where its shell took its first word for one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        program: Option<ByteText>,
        /// Its exit code, where it is over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<i32>,
    },
    /// The box says that a command that it reported is over.
    ReportedEnd {
        /// The shell, as the box numbers it.
        shell: u32,
        /// The command's number in its shell.
        number: u64,
        /// Its exit code.
        status: i32,
    },
    /// Something in the spool was not taken in: the first of its kind, or how many since that.
    SpoolRefused {
        /// What was wrong.
        fault: SpoolFault,
        /// How many.
        count: u64,
    },
    /// What the host saw and what the box reported differ.
    Gap {
        /// How.
        gap: Gap,
        /// The shell that reported, as the box numbers it; 0 for none.
        shell: u32,
        /// What it is about: the command as it was reported, or the programs as they were seen.
        what: ByteText,
        /// The exit code that was reported.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reported: Option<i32>,
        /// The exit code that was seen; 128 and the signal where one ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seen: Option<i32>,
    },
    /// A planted credential was opened: the first time in a run, or how often since the last record of
    /// it. It belongs to a run where one went alone.
    CanaryRead {
        /// Its path in the policy, below the box's home. The file may have another name by now.
        path: String,
        /// How often, at least: the kernel tells equal opens that it was not asked about as one.
        count: u64,
    },
    /// A planted credential is not there as it was planted, and is not watched from here on.
    CanaryLost {
        /// Its path in the policy.
        path: String,
        /// Why.
        why: CanaryLoss,
    },
    /// Output of a run was kept, redacted.
    Output {
        /// Which.
        stream: Stream,
        /// Bytes that the run wrote.
        bytes: u64,
        /// Bytes of them that are in the payload, before it was redacted; those from the start.
        kept: u64,
        /// The digest of the payload.
        payload: Digest,
    },
}
