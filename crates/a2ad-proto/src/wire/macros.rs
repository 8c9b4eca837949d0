//! The tables' grammar: Rust field or variant, type, protobuf number, JSON name, presence.

/// Defines a message. One line per field:
///
/// `pub context_id: String = 2 "contextId",` — left out at its default;
/// `pub id: String = 1 "id" R,` — required by the schema, hence always written (JSON-08).
///
/// `pub parts: Vec<Part> = 5 "parts" R [Message::PARTS_MAX],` — of a client at most so many.
///
/// `pub last: bool as "final" = 4 "final",` — where the schema's name is none for Rust.
///
/// `pub text: Option<String> = 1 "text" C,` — a member of the choice that the message declares by `choice "part"`.
///
/// A text after the type's name is the schema's name for it, where that differs. `from Request` after it says that
/// clients send it, so that the bounds of its own lists and of all lists below it count. `of V03` says that it is of
/// the schema of protocol 0.3.
macro_rules! message {
    (
        $(#[$meta:meta])*
        pub struct $name:ident $($schema_name:literal)? $(from $bounds:ident)? $(of $package:ident)? $(choice $choice:literal)? {$(
            $(#[$field_meta:meta])*
            pub $field:ident: $type:ty $(as $schema_field:literal)? = $number:literal $json:literal $($mark:ident)? $([$max:expr])?,
        )*}
    ) => {
        $(#[$meta])*
        pub struct $name {$(
            $(#[$field_meta])*
            pub $field: $type,
        )*}

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use ::serde::ser::SerializeStruct as _;
                // The length is only a hint, but zero would close the object at once.
                let mut object = serializer.serialize_struct(stringify!($name), 1)?;
                $(if message!(@always $($mark)?) || !$crate::wire::Field::is_absent(&self.$field) {
                    object.serialize_field($json, &self.$field)?;
                })*
                object.end()
            }
        }

        #[cfg(feature = "protobuf")]
        impl $crate::pb::Body for $name {
            fn write(&self, out: &mut Vec<u8>) {
                use $crate::pb::Slot as _;
                $(self.$field.put_all($number, out);)*
            }

            fn read(
                bytes: &[u8],
                bounds: $crate::wire::Bounds,
            ) -> Result<Self, $crate::pb::DecodeError> {
                use $crate::pb::{Pieces, Slot as _};
                use $crate::wire::Path;
                let bounds = message!(@bounds bounds $($bounds)?);
                let mut message = Self::default();
                $(let mut $field = Pieces::default();)*
                let mut reader = $crate::pb::Reader::new(bytes);
                while let Some((field, payload)) = reader.next()? {
                    match field {
                        $($number => {
                            let most = message!(@most bounds $($max)?);
                            let added = message.$field.add(&mut $field, payload, bounds, most);
                            added.map_err(|error| error.at(Path::Name($json)))?;
                        })*
                        _ => {}
                    }
                }
                $(
                    let finished = message.$field.finish(&$field, bounds);
                    finished.map_err(|error| error.at(Path::Name($json)))?;
                )*
                Ok(message)
            }
        }

        #[cfg(feature = "protobuf")]
        impl $crate::pb::Described for $name {
            const TABLE: $crate::pb::Table = $crate::pb::Table {
                name: message!(@name $name $($schema_name)?),
                choice: message!(@choice $($choice)?),
                fields: &[$($crate::pb::Field {
                    name: message!(@name $field $($schema_field)?),
                    json: $json,
                    number: $number,
                    kind: <$type as $crate::pb::Declared>::KIND,
                    label: message!(@label $type, $($mark)?),
                },)*],
            };
        }

        #[cfg(feature = "protobuf")]
        impl $crate::pb::Typed for $name {
            const KIND: $crate::pb::Kind = $crate::pb::Kind::Message(concat!(
                $crate::wire::package!($($package)?),
                message!(@name $name $($schema_name)?),
            ));
        }

        const _: () = {
            #[expect(non_camel_case_types, reason = "named after the fields")]
            #[derive(Clone, Copy)]
            enum Member { $($field,)* }

            struct MemberVisitor;

            impl ::serde::de::Visitor<'_> for MemberVisitor {
                type Value = Option<Member>;

                fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                    f.write_str("a member name")
                }

                #[allow(unreachable_patterns, reason = "one-word names are spelt the same both ways")]
                fn visit_str<E: ::serde::de::Error>(self, name: &str) -> Result<Option<Member>, E> {
                    Ok(match name {
                        $($json | stringify!($field) => Some(Member::$field),)*
                        _ => None,
                    })
                }
            }

            impl<'de> ::serde::de::DeserializeSeed<'de> for MemberVisitor {
                type Value = Option<Member>;

                fn deserialize<D: ::serde::Deserializer<'de>>(self, d: D) -> Result<Option<Member>, D::Error> {
                    d.deserialize_identifier(self)
                }
            }

            struct Visitor {
                bounds: $crate::wire::Bounds,
            }

            impl<'de> ::serde::de::Visitor<'de> for Visitor {
                type Value = $name;

                fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                    f.write_str("an object")
                }

                fn visit_map<A: ::serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                    use $crate::wire::{Path, at};
                    let bounds = self.bounds;
                    let mut message = $name::default();
                    let mut seen = 0_u32;
                    while let Some(member) = map.next_key_seed(MemberVisitor)? {
                        let Some(member) = member else {
                            map.next_value::<::serde::de::IgnoredAny>()?;
                            continue;
                        };
                        let bit = 1 << member as u32;
                        let twice = seen & bit != 0;
                        seen |= bit;
                        match member {$(
                            Member::$field if twice => {
                                return Err(at(Path::Name($json), &::serde::de::Error::custom("given twice")));
                            }
                            Member::$field => {
                                let most = message!(@most bounds $($max)?);
                                match $crate::wire::Field::read(&mut map, bounds, most) {
                                    Ok(value) => message.$field = value,
                                    Err(error) => return Err(at(Path::Name($json), &error)),
                                }
                            }
                        )*}
                    }
                    Ok(message)
                }
            }

            impl $crate::wire::Leaf for $name {
                type Wire = Self;

                fn is_default(&self) -> bool {
                    false // a message that is there is present, even if empty
                }

                fn read<'de, D: ::serde::Deserializer<'de>>(
                    deserializer: D,
                    bounds: $crate::wire::Bounds,
                ) -> Result<Self, D::Error> {
                    let bounds = message!(@bounds bounds $($bounds)?);
                    deserializer.deserialize_map(Visitor { bounds })
                }
            }

            impl<'de> ::serde::Deserialize<'de> for $name {
                fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    <Self as $crate::wire::Leaf>::read(deserializer, $crate::wire::Bounds::None)
                }
            }
        };
    };
    (@bounds $outer:ident) => { $outer };
    (@bounds $outer:ident $bounds:ident) => {{ let _ = $outer; $crate::wire::Bounds::$bounds }};
    (@most $bounds:ident) => { usize::MAX };
    (@most $bounds:ident $max:expr) => { $bounds.most($max) };
    (@always R) => { true };
    (@always $($mark:ident)?) => { false };
    (@choice) => { None };
    (@choice $choice:literal) => { Some($choice) };
    (@label $type:ty, C) => { $crate::pb::Label::Choice };
    (@label $type:ty, $($mark:ident)?) => { <$type as $crate::pb::Declared>::LABEL };
    (@name $name:ident) => { stringify!($name) };
    (@name $name:ident $schema_name:literal) => { $schema_name };
}

/// Defines a message that is nothing but a choice of one member (JSON-09). The text after the type's name is the
/// schema's name for the choice. One line per member:
///
/// `StatusUpdate(TaskStatusUpdateEvent) = 3 "statusUpdate" "status_update",`
///
/// `else { Unset }` after the table adds a variant for "no member we know"; without it, that is an error.
macro_rules! oneof {
    (
        $(#[$meta:meta])*
        pub enum $name:ident $choice:literal $(of $package:ident)? {
            $(
                $(#[$variant_meta:meta])*
                $variant:ident($type:ty) = $number:literal $json:literal $snake:literal,
            )*
        } $(else {
            $(#[$unset_meta:meta])* $unset:ident
        })?
    ) => {
        $(#[$meta])*
        pub enum $name {
            $($(#[$variant_meta])* $variant($type),)*
            $($(#[$unset_meta])* $unset)?
        }

        impl $crate::wire::Leaf for $name {
            type Wire = Self;

            fn is_default(&self) -> bool {
                false
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use ::serde::ser::SerializeStruct as _;
                let mut object = serializer.serialize_struct(stringify!($name), 1)?;
                match self {
                    $(Self::$variant(value) => object.serialize_field($json, value)?,)*
                    $(Self::$unset => {})?
                }
                object.end()
            }
        }

        #[cfg(feature = "protobuf")]
        impl $crate::pb::Body for $name {
            fn write(&self, out: &mut Vec<u8>) {
                use $crate::pb::Single as _;
                match self {
                    $(Self::$variant(value) => value.put($number, out),)*
                    $(Self::$unset => {})?
                }
            }

            fn read(
                bytes: &[u8],
                bounds: $crate::wire::Bounds,
            ) -> Result<Self, $crate::pb::DecodeError> {
                use $crate::pb::{Pieces, Single as _};
                // Pieces of the last member; with another one before it, that one is forgotten.
                let (mut chosen, mut pieces) = (0, Pieces::default());
                let mut reader = $crate::pb::Reader::new(bytes);
                while let Some((field, payload)) = reader.next()? {
                    if [$($number),*].contains(&field) {
                        if field != chosen {
                            (chosen, pieces) = (field, Pieces::default());
                        }
                        pieces.add(payload)?;
                    }
                }
                match (chosen, pieces.whole()) {
                    $(($number, Some(whole)) => <$type>::take(whole, bounds)
                        .map(Self::$variant)
                        .map_err(|error| error.at($crate::wire::Path::Name($json))),)*
                    $(_ => Ok($name::$unset),)?
                    #[allow(unreachable_patterns, reason = "without a member some choices are unset")]
                    _ => Err($crate::pb::DecodeError::invalid(
                        concat!("invalid value: map, expected an object with one of" $(, " ", $json)*),
                    )),
                }
            }
        }

        #[cfg(feature = "protobuf")]
        impl $crate::pb::Described for $name {
            const TABLE: $crate::pb::Table = $crate::pb::Table {
                name: stringify!($name),
                choice: Some($choice),
                fields: &[$($crate::pb::Field {
                    name: $snake,
                    json: $json,
                    number: $number,
                    kind: <$type as $crate::pb::Typed>::KIND,
                    label: $crate::pb::Label::Choice,
                },)*],
            };
        }

        #[cfg(feature = "protobuf")]
        impl $crate::pb::Typed for $name {
            const KIND: $crate::pb::Kind = $crate::pb::Kind::Message(concat!($crate::wire::package!($($package)?), stringify!($name)));
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl<'de> ::serde::de::Visitor<'de> for Visitor {
                    type Value = $name;

                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        f.write_str(concat!("an object with one of" $(, " ", $json)*))
                    }

                    #[allow(unreachable_patterns, reason = "one-word names are spelt the same both ways")]
                    fn visit_map<A: ::serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        use $crate::wire::{Path, at};
                        let mut found = None;
                        while let Some(name) = map.next_key::<::std::borrow::Cow<'de, str>>()? {
                            let (json, value) = match &*name {
                                $($json | $snake => {
                                    let value = map.next_value::<Option<$type>>();
                                    let value = value.map_err(|error| at(Path::Name($json), &error))?;
                                    ($json, value.map($name::$variant))
                                })*
                                _ => {
                                    map.next_value::<::serde::de::IgnoredAny>()?;
                                    continue;
                                }
                            };
                            if value.is_some() && found.is_some() {
                                let error = ::serde::de::Error::custom("excludes another member that is set");
                                return Err(at(Path::Name(json), &error));
                            }
                            found = value.or(found);
                        }
                        $(let found = found.or(Some($name::$unset));)?
                        found.ok_or_else(|| ::serde::de::Error::invalid_value(::serde::de::Unexpected::Map, &self))
                    }
                }
                deserializer.deserialize_map(Visitor)
            }
        }
    };
}

/// Defines an enum that travels by its full proto name and is read by name or number (JSON-02, JSON-06).
macro_rules! wire_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident $(of $package:ident)? {$(
            $(#[$variant_meta:meta])*
            $variant:ident = $number:literal $text:literal,
        )*}
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {$(
            $(#[$variant_meta])*
            $variant = $number,
        )*}

        impl $name {
            /// Every value, by number.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The full proto name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            /// The proto number.
            #[must_use]
            pub const fn number(self) -> i32 {
                self as i32
            }

            /// The value with this proto number.
            #[must_use]
            pub const fn from_number(number: i32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// The value with this full proto name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($text => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl $crate::wire::Leaf for $name {
            type Wire = Self;

            fn is_default(&self) -> bool {
                *self == Self::default()
            }
        }

        #[cfg(feature = "protobuf")]
        impl $crate::pb::Single for $name {
            fn put(&self, field: u32, out: &mut Vec<u8>) {
                $crate::pb::Single::put(&self.number(), field, out);
            }

            fn take(
                payload: $crate::pb::Payload<'_>,
                bounds: $crate::wire::Bounds,
            ) -> Result<Self, $crate::pb::DecodeError> {
                let number = <i32 as $crate::pb::Single>::take(payload, bounds)?;
                Self::from_number(number).ok_or_else(|| $crate::pb::DecodeError::invalid(format!(
                    concat!("invalid value: integer `{}`, expected the name or number of a ", stringify!($name)),
                    number,
                )))
            }
        }

        #[cfg(feature = "protobuf")]
        impl $name {
            pub(crate) const NAMES: $crate::pb::Names = $crate::pb::Names {
                name: stringify!($name),
                values: &[$(($text, $number),)*],
            };
        }

        #[cfg(feature = "protobuf")]
        impl $crate::pb::Typed for $name {
            const KIND: $crate::pb::Kind = $crate::pb::Kind::Enum(concat!($crate::wire::package!($($package)?), stringify!($name)));
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl ::serde::de::Visitor<'_> for Visitor {
                    type Value = $name;

                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        f.write_str(concat!("the name or number of a ", stringify!($name)))
                    }

                    fn visit_str<E: ::serde::de::Error>(self, name: &str) -> Result<$name, E> {
                        let unexpected = || E::invalid_value(::serde::de::Unexpected::Str(name), &self);
                        $name::from_name(name).ok_or_else(unexpected)
                    }

                    fn visit_i64<E: ::serde::de::Error>(self, number: i64) -> Result<$name, E> {
                        let unexpected = || E::invalid_value(::serde::de::Unexpected::Signed(number), &self);
                        let known = i32::try_from(number).ok().and_then($name::from_number);
                        known.ok_or_else(unexpected)
                    }

                    fn visit_u64<E: ::serde::de::Error>(self, number: u64) -> Result<$name, E> {
                        let unexpected = || E::invalid_value(::serde::de::Unexpected::Unsigned(number), &self);
                        let known = i32::try_from(number).ok().and_then($name::from_number);
                        known.ok_or_else(unexpected)
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }
    };
}

/// The schema that a table belongs to, as types in it are named.
#[cfg(feature = "protobuf")]
macro_rules! package {
    () => {
        ".lf.a2a.v1."
    };
    (V03) => {
        ".a2a.v1."
    };
}

#[cfg(feature = "protobuf")]
pub(crate) use package;
pub(crate) use {message, oneof, wire_enum};
