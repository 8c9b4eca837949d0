//! Protocol extensions: which a request may use, and which it must (EXT-01 to EXT-05).

use a2ad_proto::AgentExtension;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::errors::{Fault, Refusal};
use crate::version::Generation;

/// The header, in requests and answers.
pub(crate) const NAME: HeaderName = HeaderName::from_static("a2a-extensions");
/// What it is called in 0.3 (V03-19).
const V03_NAME: HeaderName = HeaderName::from_static("x-a2a-extensions");

/// What an agent's card declares.
#[derive(Debug)]
pub(crate) struct Declared(Vec<(String, bool)>);

/// What is switched on for one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Active(Vec<String>);

impl Declared {
    pub(crate) fn new(extensions: &[AgentExtension]) -> Self {
        let mut declared: Vec<(String, bool)> = Vec::new();
        for AgentExtension { uri, required, .. } in extensions {
            match declared.iter_mut().find(|(known, _)| known == uri) {
                Some((_, known_required)) => *known_required |= required,
                None => declared.push((uri.clone(), *required)),
            }
        }
        Self(declared)
    }

    /// What a request switches on: what it asks for and the agent has. The rest is ignored (EXT-03).
    ///
    /// # Errors
    /// If the agent requires one that the request does not ask for.
    pub(crate) fn negotiate(&self, headers: &HeaderMap) -> Result<Active, Fault> {
        // Either name does, whatever the generation: clients of both send both.
        let lines = [NAME, V03_NAME];
        let lines = lines.iter().flat_map(|name| headers.get_all(name));
        // Bytes, as a header need not be text: one item that is none spoils no other.
        let asked: Vec<&[u8]> = lines
            .flat_map(|line| line.as_bytes().split(|&byte| byte == b','))
            .map(<[u8]>::trim_ascii)
            .collect();
        let missing: Vec<&str> = self
            .0
            .iter()
            .filter(|(uri, required)| *required && !asked.contains(&uri.as_bytes()))
            .map(|(uri, _)| uri.as_str())
            .collect();
        if !missing.is_empty() {
            let missing = missing.join(",");
            return Err(Fault::from(Refusal::ExtensionRequired).with("requiredExtensions", missing));
        }
        let active = self.0.iter().map(|(uri, _)| uri);
        let active = active.filter(|uri| asked.contains(&uri.as_bytes()));
        Ok(Active(active.cloned().collect()))
    }
}

impl Active {
    pub(crate) fn has(&self, uri: &str) -> bool {
        self.0.iter().any(|active| active == uri)
    }

    /// What to tell the caller: one line, if anything is on (EXT-05, PARAM-02).
    pub(crate) fn echo(&self) -> Option<HeaderValue> {
        if self.0.is_empty() {
            return None;
        }
        HeaderValue::try_from(self.0.join(", ")).ok()
    }

    pub(crate) fn tell(&self, generation: Generation, headers: &mut HeaderMap) {
        if let Some(line) = self.echo() {
            let name = match generation {
                Generation::V10 => NAME,
                Generation::V03 => V03_NAME,
            };
            headers.insert(name, line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared() -> Declared {
        let extension = |uri: &str, required| AgentExtension {
            uri: uri.to_owned(),
            required,
            ..AgentExtension::default()
        };
        Declared::new(&[extension("urn:x:a", false), extension("urn:x:must", true)])
    }

    fn ask(lines: &[&str]) -> Result<Vec<String>, Fault> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(NAME, HeaderValue::from_str(line).unwrap());
        }
        declared().negotiate(&headers).map(|active| active.0)
    }

    #[test]
    fn ext_04_a_required_extension_has_to_be_asked_for() {
        for lines in [
            &[][..],
            &[""],
            &["urn:x:a"],
            &["urn:x:must2"],
            &["URN:X:MUST"],
        ] {
            let fault = ask(lines).unwrap_err();
            assert_eq!(fault.kind, a2ad_proto::ErrorKind::ExtensionSupportRequired);
        }
    }

    #[test]
    fn ext_03_what_is_not_declared_is_ignored() {
        assert_eq!(ask(&["urn:x:must, urn:x:other"]).unwrap(), ["urn:x:must"]);
        assert_eq!(ask(&["urn:x:must,urn:x:a:v2"]).unwrap(), ["urn:x:must"]);
    }

    #[test]
    fn param_02_lists_and_repeated_lines_are_one_list() {
        let both = ["urn:x:a", "urn:x:must"];
        assert_eq!(ask(&["urn:x:must,urn:x:a"]).unwrap(), both);
        assert_eq!(ask(&["urn:x:must", " urn:x:a ,"]).unwrap(), both);
    }

    #[test]
    fn ext_03_an_item_that_is_not_ascii_spoils_no_other() {
        let mut headers = HeaderMap::new();
        let line = HeaderValue::from_bytes(b"urn:x:\xff, urn:x:must,urn:x:\xc3\xa4").unwrap();
        headers.append(NAME, line);
        let active = declared().negotiate(&headers).unwrap();
        assert_eq!(active.0, ["urn:x:must"]);
    }

    #[test]
    fn ext_05_what_a_card_declares_twice_is_told_once() {
        let twice = [
            AgentExtension {
                uri: "urn:x:a".to_owned(),
                ..AgentExtension::default()
            },
            AgentExtension {
                uri: "urn:x:a".to_owned(),
                required: true,
                ..AgentExtension::default()
            },
        ];
        let declared = Declared::new(&twice);
        assert!(declared.negotiate(&HeaderMap::new()).is_err());
        let mut headers = HeaderMap::new();
        headers.append(NAME, HeaderValue::from_static("urn:x:a"));
        let active = declared.negotiate(&headers).unwrap();
        assert_eq!(active.echo().unwrap(), "urn:x:a");
    }
}
