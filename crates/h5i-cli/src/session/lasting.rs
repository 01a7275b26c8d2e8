//! A session that lasts longer than its beginning.

use std::io;
use std::os::fd::OwnedFd;

use h5i_confine::{Launched, give_back_text};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// After how many seconds a session is one that lasts.
const LASTS: i64 = 1;

/// Once the session has lasted a while, gives back the memory that held the code of its beginning:
/// reading arguments, policies, repositories. A session that ends before never pays for that.
pub(super) fn when_it_lasts(launched: &mut Launched<'_>) {
    // A session without a timer is as good as another, only larger.
    let Ok((timer, watched)) = timer().and_then(|timer| Ok((timer.try_clone()?, timer))) else {
        return;
    };
    launched.also_watch(watched, move || {
        if rustix::io::read(&timer, &mut [0_u8; 8]).is_ok() {
            give_back_text().ok();
        }
    });
}

/// Rings once, and can be read from then on.
fn timer() -> io::Result<OwnedFd> {
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
    let spec = Itimerspec {
        it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: Timespec { tv_sec: LASTS, tv_nsec: 0 },
    };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &spec)?;
    Ok(timer)
}
