//! Protocol 0.3 as data: its JSON, read into the types of 1.0 and written from them.
//!
//! Everything behind this module speaks 1.0. What 0.3 has no place for is lost on the way there, and only that:
//! tenants, file names and media types of parts that are no files, whether an empty object of a part's metadata was
//! set, device-code flows, PKCE, and whatever else [`Dialect::Proto`] says. Signatures of cards are lost both ways:
//! they are over the other form.
//!
//! 0.3 has two ways to write JSON, and its peers mix them. Readers understand either, whatever the dialect: parts
//! tagged with `kind`, `type` or not at all, `parts` or `content`, names in camelCase or snake_case, words or the
//! schema's names. The one thing that they would take differently, a `data` without a tag in which there is but
//! another `data`, is what it is in the dialect asked for. What is wrong is named as the peer wrote it. What only 1.0 has is refused by name, so that a
//! request that came to the wrong door says so.
//!
//! ```
//! use a2ad_proto::v03::{self, Dialect};
//! let params = br#"{"message":{"kind":"message","messageId":"m1","role":"user","parts":[{"kind":"text","text":"hi"}]}}"#;
//! let request = v03::read_send(params, Dialect::Kinds)?;
//! assert_eq!(request.message.unwrap().parts[0].as_text(), Some("hi"));
//!
//! let wrong = v03::read_send(br#"{"message":{"parts":[{"kind":"file","file":{"bytes":"?"}}]}}"#, Dialect::Kinds);
//! assert_eq!(wrong.unwrap_err().0[0].field, "message.parts[0].file.bytes");
//! # Ok::<(), a2ad_proto::Violations>(())
//! ```

mod card;
mod hint;
mod names;
#[cfg(feature = "protobuf")]
pub mod pb;
mod proto;
mod raw;
mod read;
mod words;
mod write;

pub use card::{is_v03, read_card, write_card, write_hybrid_card};
pub use hint::looks_like_v03;
pub use read::{
    read_cancel, read_event, read_get, read_list, read_page, read_push, read_push_create,
    read_push_delete, read_push_get, read_push_list, read_pushes, read_send, read_sent,
    read_subscribe, read_task,
};
pub use words::{error_name, kind_of_error_name};
pub use write::{
    ask_cancel, ask_get, ask_list, ask_push_create, ask_push_delete, ask_push_get, ask_push_list,
    ask_send, ask_subscribe, write_event, write_list, write_push, write_push_list, write_sent,
    write_task,
};

/// The version as requests and interfaces name it.
pub const VERSION: &str = "0.3";

/// The version as a 0.3 card names it.
pub const CARD_VERSION: &str = "0.3.0";

/// The two ways in which 0.3 writes JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Objects with `kind`, for JSON-RPC.
    Kinds,
    /// `ProtoJSON` of `a2a.v1`, for HTTP+JSON. It knows no unset flags and numbers: no `blocking` beside other
    /// settings means not to wait, and a history length of zero means no limit. Messages have no
    /// `referenceTaskIds`. A file's bytes hold its base64 text (V03-16), which is how Python and Go peers have it:
    /// what is base64 text after one decoding is decoded once more.
    Proto,
    /// The same for peers that put the bytes of a file there as they are, as those in JavaScript do.
    ProtoPlain,
}

impl Dialect {
    /// Whether what is unset looks like its default.
    const fn without_presence(self) -> bool {
        match self {
            Self::Kinds => false,
            Self::Proto | Self::ProtoPlain => true,
        }
    }
}

/// Most schemes that a client may list for a webhook; the first one is used.
const SCHEMES_MAX: usize = 100;
