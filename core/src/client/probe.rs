//! Owns the question which protocol version a server speaks: the state of the probe, and what an answer to it means.
//! It must not know how the probe is written or what waits for it.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use serde::Deserialize;

use super::peek::Finders;
use super::{Config, ResultKind};
use crate::send_buffer::FrameNumber;
use crate::{ConnectionError, Instant, Json};

/// The method of the probe.
pub(super) const METHOD: &str = "server/discover";
/// The error code with which a modern server refuses a version.
pub(super) const UNSUPPORTED_VERSION: i64 = -32022;
/// Errors that only a modern server has, and only after it has accepted the version (VER-04).
const OTHER_MODERN: [i64; 2] = [-32020, -32021];
/// Bounds of what is kept of a server's list of versions.
const LISTED: usize = 64;
const LISTED_CHARS: usize = 64;

/// A probe that is queued or waits for its answer.
#[derive(Debug)]
pub(super) struct Probe {
    pub(super) id: u64,
    pub(super) frame: FrameNumber,
    /// The version it asks in.
    pub(super) version: String,
    /// It is the second one, in a version that the server named.
    pub(super) again: bool,
    lent: bool,
    deadline: Option<Instant>,
    start_deadline: Option<Instant>,
}

/// Which deadline of a probe has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// The server did not answer in the probe's time.
    Silent,
    /// The start-up limit passed.
    Start,
}

impl Probe {
    pub(super) fn new(
        id: u64,
        frame: FrameNumber,
        version: String,
        again: bool,
        start_deadline: Option<Instant>,
    ) -> Self {
        Self { id, frame, version, again, lent: false, deadline: None, start_deadline }
    }

    /// Whether the server may have seen it.
    pub(super) fn is_lent(&self) -> bool {
        self.lent
    }

    pub(super) fn start_deadline(&self) -> Option<Instant> {
        self.start_deadline
    }

    /// Frames below this number have been lent: if it is among them, its clock starts.
    pub(super) fn lent(&mut self, up_to: FrameNumber, now: Instant, timeout: Duration) {
        if !self.lent && self.frame < up_to {
            self.lent = true;
            self.deadline = now.checked_add(timeout);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadline.into_iter().chain(self.start_deadline).min()
    }

    pub(super) fn due(&self, now: Instant) -> Option<Due> {
        let next = self.next_deadline().filter(|&at| at <= now)?;
        Some(if self.deadline == Some(next) { Due::Silent } else { Due::Start })
    }
}

/// What an answer to the probe means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The server is modern and this version is common.
    Modern(String),
    /// Ask again in this version.
    Again(String),
    /// The server wants the handshake, in this version if it named one.
    Legacy {
        version: Option<String>,
        /// The error code that says so.
        code: Option<i64>,
    },
    /// There is no going on.
    Failed(ConnectionError),
}

/// Judges the result of the probe (VER-03). One that is no discover result comes from a server that answers anything to anything:
/// it is taken for a legacy one.
pub(super) fn judge_result(result: Json<'_>, finders: &Finders, config: &Config) -> Verdict {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Discovered {
        supported_versions: Vec<String>,
    }
    let whole = result.is_object() && finders.result_kind(result) == Some(ResultKind::Complete);
    match result.deserialize::<Discovered>() {
        Ok(Discovered { supported_versions: theirs }) if whole => match common(&config.versions, &theirs) {
            Some(version) => Verdict::Modern(version),
            None => legacy_or_none(config, theirs, None),
        },
        _ => Verdict::Legacy { version: None, code: None },
    }
}

/// Judges an error in answer to the probe, whatever its id (VER-03, VER-04, VER-07, VER-09).
pub(super) fn judge_error(code: i64, data: Option<Json<'_>>, probe: &Probe, config: &Config) -> Verdict {
    if OTHER_MODERN.contains(&code) {
        return Verdict::Modern(probe.version.clone());
    }
    if code != UNSUPPORTED_VERSION {
        return Verdict::Legacy { version: None, code: Some(code) };
    }
    // The server is modern, whatever its data look like (case 196).
    let theirs = supported(data);
    match common(&config.versions, &theirs) {
        Some(version) if !probe.again => Verdict::Again(version),
        Some(_) => Verdict::Failed(no_common(all(config), theirs)),
        None => legacy_or_none(config, theirs, Some(code)),
    }
}

/// The versions that a version error lists; none where they cannot be read.
pub(super) fn supported(data: Option<Json<'_>>) -> Vec<String> {
    #[derive(Deserialize)]
    struct Unsupported {
        supported: Vec<String>,
    }
    let data = data.filter(|data| data.is_object()).and_then(|data| data.deserialize::<Unsupported>().ok());
    data.map(|data| data.supported).unwrap_or_default()
}

/// No modern version is common. A legacy one that the server lists can be had by `initialize` only (VER-07).
fn legacy_or_none(config: &Config, theirs: Vec<String>, code: Option<i64>) -> Verdict {
    match common(&config.legacy_versions, &theirs) {
        Some(version) => Verdict::Legacy { version: Some(version), code },
        None => Verdict::Failed(no_common(all(config), theirs)),
    }
}

/// The version that we prefer among the common ones.
fn common(ours: &[String], theirs: &[String]) -> Option<String> {
    ours.iter().find(|version| theirs.contains(version)).cloned()
}

fn all(config: &Config) -> impl Iterator<Item = &String> {
    config.versions.iter().chain(&config.legacy_versions)
}

/// The error that names both sides, the server's bounded.
pub(super) fn no_common<'a>(ours: impl Iterator<Item = &'a String>, theirs: Vec<String>) -> ConnectionError {
    let cut = |version: String| version.chars().take(LISTED_CHARS).collect::<String>();
    ConnectionError::NoCommonVersion {
        client: ours.map(ToString::to_string).collect(),
        server: theirs.into_iter().take(LISTED).map(cut).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(again: bool) -> Probe {
        Probe::new(1, FrameNumber(0), "2026-07-28".into(), again, None)
    }

    fn versions(list: &[&str]) -> Vec<String> {
        list.iter().map(ToString::to_string).collect()
    }

    /// A client that speaks these versions and nothing of the legacy era.
    fn modern(list: &[&str]) -> Config {
        let mut config = Config::new("c", "1");
        (config.versions, config.legacy_versions) = (versions(list), Vec::new());
        config
    }

    // VER-03: the version that the client prefers among the common ones; none in common names both lists.
    #[test]
    fn a_common_version_settles_it() {
        let ours = versions(&["2026-07-28", "2026-01-01"]);
        let judge = |text: &str| {
            judge_result(Json::parse(text).expect("JSON"), &Finders::new(), &modern(&["2026-07-28", "2026-01-01"]))
        };
        assert_eq!(
            judge(r#"{"resultType":"complete","supportedVersions":["2026-01-01","2026-07-28"]}"#),
            Verdict::Modern("2026-07-28".into())
        );
        assert_eq!(judge(r#"{"supportedVersions":["x","2026-01-01"]}"#), Verdict::Modern("2026-01-01".into()));
        assert_eq!(
            judge(r#"{"supportedVersions":["2026-09-01"]}"#),
            Verdict::Failed(ConnectionError::NoCommonVersion {
                client: ours.clone(),
                server: versions(&["2026-09-01"])
            })
        );
    }

    // VER-09: a server that answers anything to anything is no modern one.
    #[test]
    fn a_result_of_another_shape_is_that_of_a_legacy_server() {
        let legacy = Verdict::Legacy { version: None, code: None };
        for text in [
            "{}",
            "null",
            r#"["2026-07-28"]"#,
            r#"[["2026-07-28"]]"#,
            r#"{"supportedVersions":"2026-07-28"}"#,
            r#"{"supportedVersions":[1]}"#,
            r#"{"resultType":"x","supportedVersions":["2026-07-28"]}"#,
        ] {
            assert_eq!(
                judge_result(Json::parse(text).expect("JSON"), &Finders::new(), &modern(&["2026-07-28"])),
                legacy,
                "{text}"
            );
        }
    }

    // VER-03, case 196: a version error leads to one more probe, not to a legacy server; malformed data are final.
    #[test]
    fn a_version_error_is_one_more_probe_and_no_more() {
        let ours = versions(&["2026-07-28"]);
        let judge = |text: &str, again| {
            judge_error(
                UNSUPPORTED_VERSION,
                Some(Json::parse(text).expect("JSON")),
                &probe(again),
                &modern(&["2026-07-28"]),
            )
        };
        let none = |server: &[&str]| {
            Verdict::Failed(ConnectionError::NoCommonVersion { client: ours.clone(), server: versions(server) })
        };
        let good = r#"{"supported":["x","2026-07-28"],"requested":"y"}"#;
        assert_eq!(judge(good, false), Verdict::Again("2026-07-28".into()));
        assert_eq!(judge(good, true), none(&["x", "2026-07-28"]));
        assert_eq!(judge(r#"{"supported":["x"]}"#, false), none(&["x"]));
        assert_eq!(judge(r#"{"supported":"2026-07-28"}"#, false), none(&[]));
        assert_eq!(judge("3", false), none(&[]));
        assert_eq!(judge_error(UNSUPPORTED_VERSION, None, &probe(false), &modern(&["2026-07-28"])), none(&[]));
    }

    // VER-04, VER-09, case 194: any other error means a legacy server, whatever its code.
    #[test]
    fn any_other_error_is_that_of_a_legacy_server() {
        for code in [-32601, -32602, -32600, -32603, -32002, -32000, 0, 1, 42] {
            assert_eq!(
                judge_error(code, None, &probe(false), &modern(&["2026-07-28"])),
                Verdict::Legacy { version: None, code: Some(code) }
            );
        }
    }

    // VER-04: a header mismatch or a missing capability is an error of a modern server that took the version.
    #[test]
    fn errors_that_only_a_modern_server_has_settle_it() {
        for code in OTHER_MODERN {
            assert_eq!(judge_error(code, None, &probe(false), &modern(&[])), Verdict::Modern("2026-07-28".into()));
        }
    }

    // VER-07: without a common modern version, a common legacy one is had by the handshake; without either, both lists are named.
    #[test]
    fn a_listed_legacy_version_leads_to_the_handshake() {
        let mut config = modern(&["2026-07-28"]);
        config.legacy_versions = versions(&["2025-11-25", "2025-06-18"]);
        let listed = r#"["2024-11-05","2025-06-18","2026-09-01"]"#;
        let result = alloc::format!(r#"{{"supportedVersions":{listed}}}"#);
        let legacy = |code| Verdict::Legacy { version: Some("2025-06-18".into()), code };
        assert_eq!(judge_result(Json::parse(&result).expect("JSON"), &Finders::new(), &config), legacy(None));
        let data = alloc::format!(r#"{{"supported":{listed}}}"#);
        let error = |config: &Config| {
            judge_error(UNSUPPORTED_VERSION, Some(Json::parse(&data).expect("JSON")), &probe(true), config)
        };
        assert_eq!(error(&config), legacy(Some(UNSUPPORTED_VERSION)));
        config.legacy_versions = versions(&["2025-11-25"]);
        assert_eq!(
            error(&config),
            Verdict::Failed(ConnectionError::NoCommonVersion {
                client: versions(&["2026-07-28", "2025-11-25"]),
                server: versions(&["2024-11-05", "2025-06-18", "2026-09-01"]),
            })
        );
    }

    // LIM-04: of a server's list only so much is kept.
    #[test]
    fn what_is_kept_of_a_list_is_bounded() {
        let theirs: Vec<String> = (0..1000).map(|_| "v".repeat(1000)).collect();
        let ConnectionError::NoCommonVersion { server, .. } = no_common(versions(&["a"]).iter(), theirs) else {
            panic!("another error")
        };
        assert_eq!((server.len(), server[0].len()), (LISTED, LISTED_CHARS));
    }
}
