//! Owns a bounded pipe as the kernel has it: short reads and writes, an end when the last writer is gone, an error when the
//! reader is. It must not know what flows through it.

use std::collections::VecDeque;

/// What a read gives.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Bytes(Vec<u8>),
    /// Nothing there now.
    Blocked,
    /// Nothing there, and no writer is left.
    End,
}

/// The reader is gone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Broken;

#[derive(Debug)]
pub(crate) struct Pipe {
    bytes: VecDeque<u8>,
    capacity: usize,
    writers: u32,
    readers: u32,
}

impl Pipe {
    /// One writer, one reader.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { bytes: VecDeque::new(), capacity, writers: 1, readers: 1 }
    }

    /// Takes as many bytes as there is room for; zero: it would block.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        assert!(self.writers > 0, "a write after the close");
        if self.readers == 0 {
            return Err(Broken);
        }
        let n = bytes.len().min(self.capacity - self.bytes.len());
        self.bytes.extend(&bytes[..n]);
        Ok(n)
    }

    pub(crate) fn read(&mut self, most: usize) -> Read {
        let n = self.bytes.len().min(most);
        if n > 0 {
            Read::Bytes(self.bytes.drain(..n).collect())
        } else if self.writers == 0 {
            Read::End
        } else {
            Read::Blocked
        }
    }

    pub(crate) fn room(&self) -> usize {
        self.capacity - self.bytes.len()
    }

    /// A further process holds the writing end.
    pub(crate) fn share_writer(&mut self) {
        self.writers += 1;
    }

    pub(crate) fn close_writer(&mut self) {
        self.writers = self.writers.saturating_sub(1);
    }

    pub(crate) fn close_reader(&mut self) {
        self.readers = self.readers.saturating_sub(1);
        if self.readers == 0 {
            self.bytes.clear();
        }
    }
}
