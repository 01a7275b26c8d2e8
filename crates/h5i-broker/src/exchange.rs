//! One request: judged, recorded, sent on with the credential, and answered.

use std::sync::Arc;

use h5i_policy::{GitUse, Grant};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, TRANSFER_ENCODING};
use http::{HeaderMap, Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio::time::{Instant, timeout};
use zeroize::Zeroizing;

use crate::answer::{Answer, Finish, Passing, Place, Trailers};
use crate::engine::{Engine, Origin};
use crate::event::{Denial, End, Event, Program, Use};
use crate::git;
use crate::h1::Fault;
use crate::headers;
use crate::ledger::{Holding, Kind, denial};
use crate::refusal::Refusal;
use crate::scrub::Scrubber;
use crate::served::{Added, Served};
use crate::target::Target;
use crate::upload::{Outgoing, Progress, Source, Stopped, Upload};

/// Longest path in an event, in characters.
const TOLD: usize = 300;

/// A request that is well formed.
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) target: Target,
    /// What the service is called, in each place that does.
    pub(crate) authorities: Vec<String>,
    pub(crate) headers: HeaderMap,
    pub(crate) source: Source,
}

fn cut(text: &str) -> String {
    text.chars().take(TOLD).collect()
}

/// Why a request is not answered by the service, and whose it is.
struct Refused {
    refusal: Refusal,
    run: Option<u64>,
    /// The client is gone: nobody asked for what was not allowed.
    gone: bool,
}

impl Refused {
    fn new(refusal: impl Into<Refusal>, run: Option<u64>) -> Self {
        Self { refusal: refusal.into(), run, gone: false }
    }
}

/// A request that may pass, with all that it takes along.
struct Admitted {
    holding: Arc<Holding>,
    program: Option<Program>,
    credential: Option<Added>,
    place: [Place; 2],
}

/// Answers one request, by the service or by a refusal.
pub(crate) async fn exchange(
    engine: &Arc<Engine>,
    origin: &Origin,
    asked: Asked,
) -> Response<Answer> {
    let method = asked.method.clone();
    let mut path = asked.target.path().to_owned();
    match attempt(engine, origin, asked, &mut path).await {
        Ok(response) => response,
        Err(Refused { refusal, gone: true, .. }) => own_words(origin, refusal),
        Err(Refused { refusal, run, .. }) => {
            let told = cut(&format!("{method} {path}"));
            refuse(engine, origin, refusal, run, Some(told)).await
        }
    }
}

/// Answers what is no request, or not one of these: counts it, and says why.
pub(crate) async fn refuse(
    engine: &Arc<Engine>,
    origin: &Origin,
    refusal: Refusal,
    run: Option<u64>,
    request: Option<String>,
) -> Response<Answer> {
    let holder = origin.holder().await;
    let asker = holder.as_ref().and_then(|holder| holder.run).or(origin.run);
    engine.ledger.refused(Kind {
        grant: origin.served.name.clone(),
        run: asker.or(run),
        token_of: run.filter(|of| asker.is_some_and(|asker| asker != *of)),
        program: holder.map(|holder| holder.program),
        request,
        denial: refusal.denial,
    });
    own_words(origin, refusal)
}

fn own_words(origin: &Origin, refusal: Refusal) -> Response<Answer> {
    let served = &origin.served;
    refusal.response(&served.name, &served.grant.git).map(|body| Answer::Own(Some(body)))
}

async fn attempt(
    engine: &Arc<Engine>,
    origin: &Origin,
    mut asked: Asked,
    path: &mut String,
) -> Result<Response<Answer>, Refused> {
    let admitted = admit(engine, origin, &mut asked, path).await?;
    let served = &origin.served;
    let request = engine.ledger.next_request();
    let used = Use {
        grant: served.name.clone(),
        run: admitted.holding.run,
        request,
        program: admitted.program,
        way: served.way(),
        method: asked.method.clone(),
        path: cut(path),
        host: served.grant.host.clone(),
        port: served.grant.port,
    };
    let run = Some(admitted.holding.run);
    if engine.ledger.tell(Event::Used(used)).is_err() {
        return Err(Refused::new(Denial::Expired, run));
    }
    let progress = Arc::new(Progress::new());
    let mut finish = Finish {
        ledger: Arc::clone(&engine.ledger),
        holding: Arc::clone(&admitted.holding),
        request,
        began: Instant::now(),
        progress: Arc::clone(&progress),
        status: None,
        received: 0,
        scrubbed: 0,
        end: None,
        _place: admitted.place,
    };
    let sending = Sending { engine, origin, asked: &asked.method, target: &asked.target };
    let (holding, ledger) = (Arc::clone(&admitted.holding), Arc::clone(&engine.ledger));
    let upload = Upload::new(asked.source, Arc::clone(&progress), holding, ledger);
    let first = Outgoing::First(upload);
    let answered = tokio::select! {
        biased;
        end = admitted.holding.over() => Err(Failed::Ended(end)),
        answered = sending.answered(first, &asked.headers, admitted.credential, &progress) => answered,
    };
    let (response, credential) = answered.map_err(|failed| {
        let failed = match progress.stopped() {
            Some(Stopped::Ended(end)) => Failed::Ended(end),
            Some(Stopped::Refused(refusal)) => Failed::Refused(refusal),
            Some(Stopped::Gone) => {
                Failed::Refused(Refusal::because(Denial::Malformed, "its body was cut"))
            }
            None => failed,
        };
        let refusal = match failed {
            Failed::Ended(end) => {
                finish.end = Some(end);
                denial(end).into()
            }
            Failed::Refused(refusal) => {
                if matches!(refusal.denial, Denial::Unreachable | Denial::NoCredential) {
                    finish.end = Some(End::Service);
                }
                refusal
            }
        };
        let gone = progress.stopped() == Some(Stopped::Gone);
        Refused { refusal, run, gone }
    })?;
    progress.forget();
    finish.status = Some(response.status().as_u16());
    let (mut parts, body) = response.into_parts();
    let mut scrubber = credential.map(|added| Scrubber::new(added.redactor));
    if let Some(why) = unfit(&parts, scrubber.is_some()) {
        finish.end = Some(End::Service);
        return Err(Refused::new(Refusal::because(Denial::BadAnswer, why), run));
    }
    // Without a body its size is no framing, but what was asked for.
    let size = match asked.method.as_str() {
        "HEAD" => headers::size(&parts.headers),
        _ => None,
    };
    headers::incoming(&mut parts.headers, scrubber.is_some());
    parts.headers.extend(size.map(|size| (CONTENT_LENGTH, size)));
    if let Some(scrubber) = &mut scrubber {
        scrubber.headers(&mut parts.headers);
        finish.scrubbed = scrubber.found();
    }
    let http1 = parts.version == http::Version::HTTP_11;
    let trailers = if http1 { Trailers::None } else { Trailers::Maybe };
    parts.version = http::Version::HTTP_11;
    parts.extensions = http::Extensions::new();
    let passing = Passing::new(body, scrubber, (finish, trailers), engine.patience.stream);
    Ok(Response::from_parts(parts, Answer::Passing(Box::new(passing))))
}

/// Why an answer can't be passed on.
fn unfit(parts: &http::response::Parts, with_secret: bool) -> Option<&'static str> {
    if parts.status == StatusCode::SWITCHING_PROTOCOLS {
        return Some("the service changes to another protocol");
    }
    let packed = parts.headers.get_all(CONTENT_ENCODING).iter();
    let packed = packed.filter(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"));
    let framed = parts.headers.get_all(TRANSFER_ENCODING).iter();
    let framed = framed.filter(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"chunked"));
    let part =
        parts.status == StatusCode::PARTIAL_CONTENT || parts.headers.contains_key(CONTENT_RANGE);
    if with_secret && part {
        return Some(
            "the service answers with a part, in which the credential could not be found, though it was asked for the whole",
        );
    }
    if with_secret && packed.chain(framed).count() > 0 {
        return Some(
            "the service packs its answer though it was asked not to, so it can't be looked through for the credential",
        );
    }
    None
}

/// Judges a request by everything that the grant says. Nothing is sent yet. What else than the path
/// an event is to tell is added to `path`.
async fn admit(
    engine: &Arc<Engine>,
    origin: &Origin,
    asked: &mut Asked,
    path: &mut String,
) -> Result<Admitted, Refused> {
    let served = &origin.served;
    if !asked.authorities.iter().all(|authority| served.is_called(authority)) {
        return Err(Refused::new(Denial::OtherHost, None));
    }
    let name = served.grant.query.as_ref();
    let in_query = name.map_or(Ok(Vec::new()), |name| asked.target.presented(name));
    let (holding, mut run) = match served.way() {
        h5i_policy::Via::Intercept => {
            let none = Refused::new(Denial::Token, None);
            let run = origin.run.ok_or(none)?;
            (engine.ledger.by_run(served.place, run), Some(run))
        }
        _ => {
            let presented = headers::presented(&asked.headers, &served.grant.header);
            let tokens = presented.iter().map(|(_, token)| *token);
            // What stands there is never sent on.
            let tokens: Vec<_> = tokens.chain(in_query.iter().flatten().copied()).collect();
            let found = engine.ledger.by_token(served.place, &tokens);
            if found.is_ok() {
                // The token is for the broker. What else the client shows is judged later.
                for (name, token) in presented {
                    if engine.ledger.is_token(&token) {
                        asked.headers.remove(name);
                    }
                }
            }
            (found, None)
        }
    };
    let holding = holding.map_err(|(denial, of)| Refused::new(denial, of))?;
    run = run.or(Some(holding.run));
    let refused = |denial: Denial| Refused::new(denial, run);
    let holder = origin.holder().await;
    // A token is for one run, whoever has come by it.
    if holder.as_ref().and_then(|holder| holder.run).is_some_and(|of| of != holding.run) {
        return Err(refused(Denial::Token));
    }
    let program = holder.map(|holder| holder.program);
    if !served.lists_program(program.as_ref()) {
        return Err(refused(Denial::Program));
    }
    served.lists(&asked.method, &asked.target).map_err(refused)?;
    in_query.map_err(|fault| Refused::new(Fault::from(fault), run))?;
    if served.is_limited() && headers::overrides(&asked.headers) {
        let why = "it has a header by which some services take another method or path";
        return Err(Refused::new(Refusal::because(Denial::Malformed, why), run));
    }
    let git = git_asks(served, asked, path).map_err(|refusal| Refused::new(refusal, run))?;
    let place = served.begin().ok_or_else(|| refused(Denial::AtOnce))?;
    if git == Some(git::Asks::Push) {
        tokio::select! {
            biased;
            end = holding.over() => return Err(refused(denial(end))),
            judged = git::judge_push(&served.grant.git, &mut asked.source, path) => {
                judged.map_err(|stopped| not_whole(stopped, run))?;
            }
        }
    }
    let credential = served.credential().await.map_err(|refusal| Refused::new(refusal, run))?;
    // It may have ended while the credential was looked up.
    holding.may_begin().map_err(refused)?;
    holding.take_request(asked.source.size()).map_err(refused)?;
    Ok(Admitted { holding, program, credential, place })
}

/// What a request asks of git, by a grant that is for git.
fn git_asks(
    served: &Served,
    asked: &Asked,
    path: &mut String,
) -> Result<Option<git::Asks>, Refusal> {
    let Grant { git, .. } = &served.grant;
    if *git == GitUse::Any {
        return Ok(None);
    }
    path.extend(git::service(&asked.target).map(|service| format!(" {service}")));
    git::asks(git, &asked.method, &asked.target, &asked.headers).map(Some)
}

/// A refusal of a body that did not go on to its end.
fn not_whole(stopped: Stopped, run: Option<u64>) -> Refused {
    let refusal = match stopped {
        Stopped::Refused(refusal) => refusal,
        Stopped::Ended(end) => denial(end).into(),
        Stopped::Gone => Refusal::because(Denial::Malformed, "its body was cut"),
    };
    Refused { refusal, run, gone: stopped == Stopped::Gone }
}

/// Why there is no answer of the service's.
enum Failed {
    Ended(End),
    Refused(Refusal),
}

struct Sending<'a> {
    engine: &'a Arc<Engine>,
    origin: &'a Origin,
    asked: &'a str,
    target: &'a Target,
}

impl Sending<'_> {
    /// The service's answer; after a 401 the one to another credential, where there is one and the
    /// body can be sent again.
    async fn answered(
        &self,
        first: Outgoing,
        headers: &HeaderMap,
        credential: Option<Added>,
        progress: &Progress,
    ) -> Result<(Response<Incoming>, Option<Added>), Failed> {
        let response = self.send(first, headers, credential.as_ref(), progress).await?;
        let Some(used) = &credential else { return Ok((response, None)) };
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok((response, credential));
        }
        let Some(again) = progress.again() else { return Ok((response, credential)) };
        let Some(other) = self.origin.served.renewed(used).await else {
            return Ok((response, credential));
        };
        drop(response);
        let response = self.send(Outgoing::Again(again), headers, Some(&other), progress).await?;
        Ok((response, Some(other)))
    }

    async fn send(
        &self,
        body: Outgoing,
        headers: &HeaderMap,
        added: Option<&Added>,
        progress: &Progress,
    ) -> Result<Response<Incoming>, Failed> {
        let served = &self.origin.served;
        let grant = &served.grant;
        let port = if grant.port == 443 { String::new() } else { format!(":{}", grant.port) };
        let credential = added.map(|added| &*added.credential);
        let target = match credential.and_then(|credential| credential.query.as_ref()) {
            Some((name, value)) => self.target.carrying(name, value.expose()),
            None => Ok(Zeroizing::new(self.target.origin_form())),
        };
        let target = target.map_err(|fault| Failed::Refused(Fault::from(fault).into()))?;
        let uri = ["https://", grant.host.as_str(), &port, &target].concat();
        let uri = Zeroizing::new(uri);
        let sent = headers::outgoing(headers.clone(), credential)
            .and_then(|sent| headers::stamped(sent, served.stamp.as_ref()))
            .ok_or(Failed::Refused(Denial::NoCredential.into()))?;
        let built = Request::builder().method(self.asked).uri(uri.as_str()).body(body);
        let mut request = built.map_err(|_no_uri| Failed::Refused(Denial::Malformed.into()))?;
        *request.headers_mut() = sent;
        let mut answer = served.upstream.client().request(request);
        let mut before = progress.so_far();
        loop {
            match timeout(self.engine.patience.answer, &mut answer).await {
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(_)) => break,
                // A body that is still on its way is no silence of the service's.
                Err(_late) if before != progress.so_far() => before = progress.so_far(),
                Err(_late) => break,
            }
        }
        Err(Failed::Refused(Denial::Unreachable.into()))
    }
}
