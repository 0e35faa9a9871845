//! The loop that performs one request after the other: a source, a pacer, a backend and a recorder put together.

use crate::backend::Perform;
use crate::issue::context::Context;
use crate::issue::pausing::Pausing;
use crate::issue::take::Take;
use crate::metrics::recorder::{Recorder, Unissued};
use crate::source::fetch::Claimed;
use std::sync::atomic::Ordering::Relaxed;

/// Performs one request after the other until the source ends, time is up, or it is told to stop. Returns how many
/// requests were due by then and did not go out.
pub fn one_by_one<B: Perform, T: Take, const OPEN: bool>(
    context: &mut Context,
    take: &mut T,
    backend: &mut B,
    recorder: &mut Recorder,
    mut pausing: Option<Pausing>,
) -> Unissued {
    let mut held = None;
    while !context.stop.load(Relaxed) {
        let request = match take.take() {
            Claimed::Request(r) => r,
            Claimed::NotYet => {
                let now = context.clock.now();
                if now >= context.deadline {
                    break;
                }
                recorder.idle(now, &mut context.clock);
                continue;
            }
            Claimed::End => break,
        };
        backend.before(&request);
        let mut issued = context.clock.now();
        if issued >= context.deadline {
            held = Some(request);
            break;
        }
        let mut intended = issued;
        if OPEN {
            intended = context.start.saturating_add(request.due);
            if issued < intended {
                match context.wait(intended, issued, recorder) {
                    Some(now) => issued = now,
                    None => {
                        held = Some(request);
                        break;
                    }
                }
            }
        }
        let in_flight = take.issue();
        let result = backend.perform(&request);
        let now = context.clock.now();
        recorder.in_flight(in_flight);
        recorder.complete(&request, intended, issued, now, result, &mut context.clock);
        take.done(&request, now);
        if let Some(pausing) = &mut pausing {
            pausing.count();
            if pausing.is_due() && context.wait(pausing.begin(now), now, recorder).is_none() {
                break;
            }
        }
    }
    if !OPEN {
        return Unissued::default();
    }
    context.count_unissued(|| held.take().map_or_else(|| take.rest(), Claimed::Request))
}
