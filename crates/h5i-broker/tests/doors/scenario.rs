//! The rehearsals.

mod budgets;
mod carried;
mod frames;
mod hosts;
mod identity;
mod leaks;
mod listed;
mod lives;
mod many;
mod placed;
mod real;
mod smuggling;
mod spoken;

/// Id of the door, claim, rehearsal.
pub(crate) const ALL: &[(&str, &str, fn())] = &[
    ("G1", "the secret is in nothing that the box or a record gets", leaks::nowhere),
    ("G1", "a query's secret is in nothing that the box or a record gets", placed::nowhere),
    ("G2", "a request without this run's token for this grant is refused", identity::tokens),
    ("G2", "a token works wherever clients put it", identity::places),
    ("G2", "a token works in the parameter where the secret goes", placed::token_in_query),
    ("G2", "a connection of nobody's is refused", identity::nobody),
    ("G3", "Host, authority and target must name the grant's host", hosts::names),
    ("G3", "TLS must name the grant's host, and be TLS", hosts::server_names),
    ("G3", "a connection goes on where its diverter left off", hosts::read_already),
    ("G3", "HTTP/2 must name the grant's host", spoken::http2_names),
    ("G3", "a redirect is passed on, not followed", hosts::redirects),
    ("G3", "a service that is not trusted gets nothing", hosts::untrusted),
    ("G4", "what two parsers could read in two ways is refused", smuggling::table),
    ("G4", "a second request before the first answer is refused", smuggling::pipelined),
    ("G4", "framing that breaks in the middle never looks like an end", smuggling::broken_off),
    (
        "G4",
        "whatever is written, the service sees well-formed listed requests",
        smuggling::anything,
    ),
    ("G4", "a second parameter of the secret's name can't be smuggled", placed::smuggled),
    ("G4", "fields of HTTP/2 that would be lines of HTTP/1.1 are refused", frames::fields),
    ("G5", "paths hold after one normalisation", listed::paths),
    ("G5", "methods hold", listed::methods),
    ("G6", "the box's own credentials never pass", leaks::own_credentials),
    ("G6", "of several headers each is the host's", placed::headers),
    ("G6", "the parameter of the secret is the host's", placed::parameter),
    ("G6", "without a secret the client's headers stay", leaks::no_secret),
    ("G7", "revoke, end, expiry and suspension cut an open stream within a second", lives::cut),
    ("G7", "so they do before the service answers, and while nobody reads", lives::cut_elsewhere),
    ("G7", "what was answered is told before the end", lives::answered),
    ("G7", "an extended grant lives on", lives::extended),
    ("G7", "a frozen box's token is dead for ever", lives::frozen),
    ("G7", "a grant that is not yet, or for once", lives::terms),
    ("G8", "an answer does not hand the secret back", leaks::echo),
    ("G8", "a redirect does not hand back a query's secret", placed::handed_back),
    ("G8", "a packed answer is refused", leaks::packed),
    ("G9", "an event comes before the next is sent", carried::events),
    ("G9", "100 MB each way, in bounded memory", carried::bulk),
    ("G9", "an answer that breaks off does not look whole", carried::broken_off),
    ("G9", "who is refused while it sends reads why", carried::refused_early),
    ("G9", "a client that waits to be told to go on is told", carried::expect),
    ("G9", "1,000 idle streams", many::idle),
    ("G9", "what is open at once is bounded over all grants", many::bounded),
    ("G9", "connections that are opened and closed take no more than their places", many::fleeting),
    ("G9", "a client that dribbles is closed", many::slow),
    (
        "G10a",
        "only listed programs use a grant, and each use names its program",
        identity::programs,
    ),
    ("B1", "each budget stops by its name, within the piece", budgets::each),
    ("B2", "a login is renewed once, and the request sent again", budgets::renewed),
    ("B3", "without a credential nothing is sent", budgets::missing),
    ("E1", "a use is on record before it is sent; a closed record ends everything", lives::closed),
    ("E2", "ends are told, and refusals by their number", lives::told),
    ("H1", "HTTP/2 on both sides", spoken::http2),
    ("R1", "curl works as at home, by each way", real::curl),
    ("R1", "Node works as at home, streams included", real::node),
    ("R1", "Python, strict about certificates, works as at home", real::python),
    ("H2", "another protocol is refused by its name", spoken::upgrades),
];
