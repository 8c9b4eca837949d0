//! How public ids are laid out in a column.

use a2ad_core::keys::{uuid_bits, uuid_text};
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};

/// An id as a column value: a UUID in its usual form takes 16 bytes, anything else is text.
pub(crate) struct PackedId<'a>(pub(crate) &'a str);

impl ToSql for PackedId<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match uuid_bits(self.0) {
            Some(bits) => ToSqlOutput::Owned(Value::Blob(bits.to_be_bytes().to_vec())),
            None => ToSqlOutput::Borrowed(ValueRef::Text(self.0.as_bytes())),
        })
    }
}

/// The id in a column, if there is one.
pub(crate) fn unpack_id(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Blob(bytes) => {
            let bits = u128::from_be_bytes(bytes.try_into().ok()?);
            Some(uuid_text(bits))
        }
        ValueRef::Text(text) => std::str::from_utf8(text).ok().map(str::to_owned),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(id: &str) -> (usize, Option<String>) {
        let packed = PackedId(id);
        let value = match packed.to_sql().unwrap() {
            ToSqlOutput::Owned(value) => value,
            ToSqlOutput::Borrowed(value) => value.try_into().unwrap(),
            other => panic!("{other:?}"),
        };
        let value = ValueRef::from(&value);
        let size = match value {
            ValueRef::Blob(bytes) | ValueRef::Text(bytes) => bytes.len(),
            _ => 0,
        };
        (size, unpack_id(value))
    }

    #[test]
    fn ids_come_back_as_they_were() {
        let uuid = "0197a1b2-c3d4-8e5f-a071-829304a5b6c7";
        assert_eq!(there_and_back(uuid), (16, Some(uuid.to_owned())));
        for other in [
            "0197A1B2-C3D4-8E5F-A071-829304A5B6C7",
            "0197a1b2c3d4-8e5f-a071-829304a5b6c7-",
            "0197a1b2-c3d4-8e5f-a071-829304a5b6cg",
            "urlaub",
            "ü",
        ] {
            assert_eq!(there_and_back(other), (other.len(), Some(other.to_owned())));
        }
    }
}
