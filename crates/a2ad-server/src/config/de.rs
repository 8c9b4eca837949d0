//! serde over the located tree.

use serde::Deserializer;
use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};

use super::error::ConfigError;
use super::tree::{Key, Kind, Node, underscored};

impl Node {
    fn unexpected(&self) -> Unexpected<'_> {
        match &self.kind {
            Kind::Null => Unexpected::Other("nothing"),
            Kind::Scalar { text, .. } => Unexpected::Str(text),
            Kind::List(_) => Unexpected::Other("a list"),
            Kind::Map(_) => Unexpected::Other("a mapping"),
        }
    }

    fn wrong<T>(&self, expected: &dyn de::Expected) -> Result<T, ConfigError> {
        let error: ConfigError = de::Error::invalid_type(self.unexpected(), expected);
        Err(error.at(&self.origin))
    }

    /// The same where there should be more than a text. Which text it is does not matter, and it may be a secret.
    fn not_nested<T>(&self, expected: &dyn de::Expected) -> Result<T, ConfigError> {
        match &self.kind {
            Kind::Scalar { .. } => {
                let error: ConfigError =
                    de::Error::invalid_type(Unexpected::Other("a text"), expected);
                Err(error.at(&self.origin))
            }
            Kind::Null | Kind::List(_) | Kind::Map(_) => self.wrong(expected),
        }
    }

    fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar { text, .. } => Some(text),
            Kind::Null | Kind::List(_) | Kind::Map(_) => None,
        }
    }
}

macro_rules! parsed {
    ($($method:ident $visit:ident $type:ty, $words:literal;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
            match self.text().and_then(|text| text.parse::<$type>().ok()) {
                Some(value) => visitor.$visit(value),
                None => self.wrong(&$words),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for &Node {
    type Error = ConfigError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
        match &self.kind {
            Kind::Null => visitor.visit_unit(),
            Kind::Scalar { text, plain: true } => {
                if let Ok(flag) = text.parse::<bool>() {
                    visitor.visit_bool(flag)
                } else if let Ok(number) = text.parse::<u64>() {
                    visitor.visit_u64(number)
                } else if let Ok(number) = text.parse::<i64>() {
                    visitor.visit_i64(number)
                } else if let Some(number) = fraction(text) {
                    visitor.visit_f64(number)
                } else {
                    visitor.visit_str(text)
                }
            }
            Kind::Scalar { text, plain: false } => visitor.visit_str(text),
            Kind::List(items) => visitor.visit_seq(Items {
                items: items.iter().enumerate(),
            }),
            Kind::Map(entries) => visitor.visit_map(Entries::new(entries, false)),
        }
    }

    parsed! {
        deserialize_bool visit_bool bool, "true or false";
        deserialize_i8 visit_i8 i8, "a whole number";
        deserialize_i16 visit_i16 i16, "a whole number";
        deserialize_i32 visit_i32 i32, "a whole number";
        deserialize_i64 visit_i64 i64, "a whole number";
        deserialize_u8 visit_u8 u8, "a whole number from 0 on";
        deserialize_u16 visit_u16 u16, "a whole number from 0 on";
        deserialize_u32 visit_u32 u32, "a whole number from 0 on";
        deserialize_u64 visit_u64 u64, "a whole number from 0 on";
        deserialize_f32 visit_f32 f32, "a number";
        deserialize_f64 visit_f64 f64, "a number";
    }

    /// Words are taken as they stand: `version: 1.0` needs no quotes.
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
        match self.text() {
            Some(text) => visitor.visit_str(text),
            None => self.wrong(&"a text"),
        }
    }

    /// A text, or else whatever the visitor takes: some settings can be written short as a text,
    /// or long.
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
        match &self.kind {
            Kind::Scalar { text, .. } => visitor.visit_str(text),
            Kind::Map(entries) => visitor.visit_map(Entries::new(entries, true)),
            Kind::Null | Kind::List(_) => self.deserialize_any(visitor),
        }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
        match self.kind {
            Kind::Null => visitor.visit_none(),
            Kind::Scalar { .. } | Kind::List(_) | Kind::Map(_) => visitor.visit_some(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
        match &self.kind {
            Kind::List(items) => visitor.visit_seq(Items {
                items: items.iter().enumerate(),
            }),
            // `agents:` with nothing after it is an empty list.
            Kind::Null => visitor.visit_seq(Items {
                items: [].iter().enumerate(),
            }),
            Kind::Scalar { .. } | Kind::Map(_) => self.not_nested(&"a list"),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
        match &self.kind {
            Kind::Map(entries) => visitor.visit_map(Entries::new(entries, false)),
            Kind::Null => visitor.visit_map(Entries::new(&[], false)),
            Kind::Scalar { .. } | Kind::List(_) => self.not_nested(&"a mapping"),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConfigError> {
        match &self.kind {
            Kind::Map(entries) => visitor.visit_map(Entries::new(entries, true)),
            // `echo:` with nothing after it takes every default.
            Kind::Null => visitor.visit_map(Entries::new(&[], true)),
            Kind::Scalar { .. } | Kind::List(_) => self.not_nested(&"a mapping"),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConfigError> {
        match self.text() {
            Some(text) => visitor.visit_enum(Word(&underscored(text))),
            None => self.wrong(&"a word"),
        }
    }

    serde::forward_to_deserialize_any! {
        char bytes byte_buf unit unit_struct newtype_struct tuple tuple_struct ignored_any
    }
}

/// A number that is not whole. What begins with a letter is a word, also `inf` and `nan`.
fn fraction(text: &str) -> Option<f64> {
    let digits = text.trim_start_matches(['-', '+', '.']);
    let number: f64 = text.parse().ok()?;
    (digits.starts_with(|c: char| c.is_ascii_digit()) && number.is_finite()).then_some(number)
}

/// The items of a list, with their places for errors.
struct Items<'a> {
    items: std::iter::Enumerate<std::slice::Iter<'a, Node>>,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = ConfigError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ConfigError> {
        let Some((index, node)) = self.items.next() else {
            return Ok(None);
        };
        match seed.deserialize(node) {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(error.at(&node.origin).inside(format!("[{index}]"))),
        }
    }
}

/// The entries of a mapping; `fields` means that keys are ours and may have dashes.
struct Entries<'a> {
    entries: std::slice::Iter<'a, (Key, Node)>,
    value: Option<&'a (Key, Node)>,
    fields: bool,
}

impl<'a> Entries<'a> {
    fn new(entries: &'a [(Key, Node)], fields: bool) -> Self {
        Self {
            entries: entries.iter(),
            value: None,
            fields,
        }
    }
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = ConfigError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ConfigError> {
        let Some(entry) = self.entries.next() else {
            return Ok(None);
        };
        self.value = Some(entry);
        let (key, _) = entry;
        let text = if self.fields {
            underscored(&key.text)
        } else {
            key.text.clone()
        };
        let text: StrDeserializer<'_, ConfigError> = text.as_str().into_deserializer();
        match seed.deserialize(text) {
            Ok(key) => Ok(Some(key)),
            Err(error) => Err(error.at(&key.origin)),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, ConfigError> {
        let Some((key, node)) = self.value.take() else {
            return Err(ConfigError::new("a value was asked for before its key"));
        };
        seed.deserialize(node)
            .map_err(|error| error.at(&node.origin).inside(key.text.as_str()))
    }
}

/// A choice between words.
struct Word<'a>(&'a str);

impl<'de> EnumAccess<'de> for Word<'_> {
    type Error = ConfigError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self), ConfigError> {
        let word: StrDeserializer<'_, ConfigError> = self.0.into_deserializer();
        Ok((seed.deserialize(word)?, self))
    }
}

impl<'de> VariantAccess<'de> for Word<'_> {
    type Error = ConfigError;

    fn unit_variant(self) -> Result<(), ConfigError> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, ConfigError> {
        Err(de::Error::custom("expected more than a word"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, ConfigError> {
        Err(de::Error::custom("expected more than a word"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, ConfigError> {
        Err(de::Error::custom("expected more than a word"))
    }
}
