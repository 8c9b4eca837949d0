//! What a field of each kind reads and when it is left out.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{
    self, Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess,
    SeqAccess,
};
use serde_json::value::RawValue;

use super::{Bounds, Path, at, too_many};
use crate::{Metadata, Timestamp};

/// One value that is neither a list, a map nor optional.
pub(crate) trait Leaf: Sized {
    /// What to read it as; differs from the type itself only where serde's own reader is too strict.
    type Wire: DeserializeOwned + Into<Self>;

    /// Whether it equals the default that proto3 leaves out.
    fn is_default(&self) -> bool;

    /// Reads one. Messages hand the bounds on to their fields.
    fn read<'de, D: Deserializer<'de>>(deserializer: D, _bounds: Bounds) -> Result<Self, D::Error> {
        Self::Wire::deserialize(deserializer).map(Into::into)
    }
}

/// A field of a message.
pub(crate) trait Field: Sized {
    /// Whether ProtoJSON leaves the member out (JSON-08).
    fn is_absent(&self) -> bool;

    /// Reads the member's value; `null` means unset (JSON-06). Of a list at most `most` elements.
    fn read<'de, A: MapAccess<'de>>(
        map: &mut A,
        bounds: Bounds,
        most: usize,
    ) -> Result<Self, A::Error>;
}

macro_rules! leaf {
    ($($type:ty as $wire:ty, |$value:ident| $default:expr;)*) => {$(
        impl Leaf for $type {
            type Wire = $wire;

            fn is_default(&self) -> bool {
                let $value = self;
                $default
            }
        }
    )*};
}

leaf! {
    String as String, |text| text.is_empty();
    bool as bool, |flag| !*flag;
    i32 as Int32, |number| *number == 0;
    // Messages have presence of their own: an empty one that is set is not the same as none.
    Timestamp as Timestamp, |_time| false;
    Metadata as Metadata, |_metadata| false;
}

impl<T: Leaf + Default> Field for T {
    fn is_absent(&self) -> bool {
        self.is_default()
    }

    fn read<'de, A: MapAccess<'de>>(
        map: &mut A,
        bounds: Bounds,
        _most: usize,
    ) -> Result<Self, A::Error> {
        let value = map.next_value_seed(Nullable(One::new(bounds)))?;
        Ok(value.unwrap_or_default())
    }
}

impl<T: Leaf> Field for Option<T> {
    fn is_absent(&self) -> bool {
        self.is_none()
    }

    fn read<'de, A: MapAccess<'de>>(
        map: &mut A,
        bounds: Bounds,
        _most: usize,
    ) -> Result<Self, A::Error> {
        map.next_value_seed(Nullable(One::new(bounds)))
    }
}

impl<T: Leaf> Field for Vec<T> {
    fn is_absent(&self) -> bool {
        self.is_empty()
    }

    fn read<'de, A: MapAccess<'de>>(
        map: &mut A,
        bounds: Bounds,
        most: usize,
    ) -> Result<Self, A::Error> {
        let list = List {
            element: One::new(bounds),
            most,
        };
        Ok(map.next_value_seed(Nullable(list))?.unwrap_or_default())
    }
}

impl<T: Leaf> Field for BTreeMap<String, T> {
    fn is_absent(&self) -> bool {
        self.is_empty()
    }

    fn read<'de, A: MapAccess<'de>>(
        map: &mut A,
        bounds: Bounds,
        _most: usize,
    ) -> Result<Self, A::Error> {
        let entries = Entries(One::new(bounds));
        Ok(map.next_value_seed(Nullable(entries))?.unwrap_or_default())
    }
}

/// Reads one value.
struct One<T> {
    bounds: Bounds,
    of: PhantomData<T>,
}

impl<T> One<T> {
    fn new(bounds: Bounds) -> Self {
        let of = PhantomData;
        Self { bounds, of }
    }
}

impl<T> Clone for One<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for One<T> {}

impl<'de, T: Leaf> DeserializeSeed<'de> for One<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        T::read(deserializer, self.bounds)
    }
}

/// Reads what the other one reads, or `null`.
struct Nullable<S>(S);

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Nullable<S> {
    type Value = Option<S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de, S: DeserializeSeed<'de>> de::Visitor<'de> for Nullable<S> {
    type Value = Option<S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("option")
    }

    fn visit_none<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        self.0.deserialize(deserializer).map(Some)
    }
}

/// Reads a list. Its errors name the element; `null` is no element.
struct List<T> {
    element: One<T>,
    most: usize,
}

impl<'de, T: Leaf> DeserializeSeed<'de> for List<T> {
    type Value = Vec<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Leaf> de::Visitor<'de> for List<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while list.len() < self.most {
            match seq.next_element_seed(self.element) {
                Ok(Some(element)) => list.push(element),
                Ok(None) => return Ok(list),
                Err(error) => return Err(at(Path::Index(list.len()), &error)),
            }
        }
        match seq.next_element::<IgnoredAny>()? {
            Some(_) => Err(de::Error::custom(too_many(self.most))),
            None => Ok(list),
        }
    }
}

/// Reads a map. Its errors name the key, and a key given twice is refused.
struct Entries<T>(One<T>);

impl<'de, T: Leaf> DeserializeSeed<'de> for Entries<T> {
    type Value = BTreeMap<String, T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: Leaf> de::Visitor<'de> for Entries<T> {
    type Value = BTreeMap<String, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(self.0);
            let value = value.map_err(|error| at(Path::Key(&key), &error))?;
            if entries.contains_key(&key) {
                return Err(at(Path::Key(&key), &de::Error::custom("given twice")));
            }
            entries.insert(key, value);
        }
        Ok(entries)
    }
}

/// An integer the way ProtoJSON reads them: also as a string, and as a float without a fraction.
pub(crate) struct Int32(i32);

impl From<Int32> for i32 {
    fn from(number: Int32) -> Self {
        number.0
    }
}

impl<'de> Deserialize<'de> for Int32 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // From the literal itself: what visitors get for `1e2` depends on how the rest of the build configures
        // serde_json.
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let literal = raw.get();
        let unquoted = literal
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'));
        integer(unquoted.unwrap_or(literal))
            .map(Int32)
            .ok_or_else(|| de::Error::custom("expected a 32-bit integer"))
    }
}

fn integer(text: &str) -> Option<i32> {
    // Rust also reads "+1", "inf" and the like, which are not JSON numbers.
    let plain = |b| matches!(b, b'0'..=b'9' | b'-' | b'.' | b'e' | b'E');
    if !text.bytes().all(plain) {
        return None;
    }
    text.parse().ok().or_else(|| integral(text.parse().ok()?))
}

#[expect(clippy::cast_possible_truncation, reason = "guarded by the comparison")]
fn integral(number: f64) -> Option<i32> {
    let range = f64::from(i32::MIN)..=f64::from(i32::MAX);
    (number.trunc() == number && range.contains(&number)).then_some(number as i32)
}
