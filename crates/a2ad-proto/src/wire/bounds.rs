//! How much is read of what a client sends.

/// Whether lists have a longest length. Those in requests do: an empty part takes four bytes of protobuf and a
/// hundred of memory. Those that are kept, or that agents make, are as long as they have become.
#[derive(Clone, Copy)]
pub(crate) enum Bounds {
    Request,
    None,
}

impl Bounds {
    /// How many elements are read of a list that may have `max` of them in a request.
    pub(crate) const fn most(self, max: usize) -> usize {
        match self {
            Self::Request => max,
            Self::None => usize::MAX,
        }
    }
}

/// What is wrong with a longer list.
pub(crate) fn too_many(max: usize) -> String {
    format!("has more than {max} elements")
}
