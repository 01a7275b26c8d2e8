//! New inputs from old ones.

/// The longest input that is made, in bytes.
const LONGEST: usize = 8192;

/// Changes inputs at random; equal seeds make equal inputs.
pub(crate) struct Mutator {
    state: u64,
}

impl Mutator {
    pub(crate) fn new(seed: u64) -> Self {
        // Zero would stay zero.
        Self { state: seed.wrapping_mul(2).wrapping_add(1) }
    }

    /// A number below `bound`, which is not zero. xorshift64*.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let number = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).unwrap_or(0) % bound.max(1)
    }

    /// One of the seeds, changed a few times.
    pub(crate) fn input(&mut self, seeds: &[Vec<u8>], words: &[&[u8]]) -> Vec<u8> {
        let chosen = self.below(seeds.len());
        let mut input = seeds.get(chosen).cloned().unwrap_or_default();
        for _ in 0..=self.below(6) {
            self.change(&mut input, seeds, words);
        }
        input.truncate(LONGEST);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, seeds: &[Vec<u8>], words: &[&[u8]]) {
        let at = self.below(input.len() + 1);
        match self.below(8) {
            0 => {
                let bit = self.below(8);
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << bit;
                }
            }
            1 => {
                let value = self.below(256);
                if let (Some(byte), Ok(value)) = (input.get_mut(at), u8::try_from(value)) {
                    *byte = value;
                }
            }
            2 => {
                let end = (at + self.below(32)).min(input.len());
                input.drain(at..end);
            }
            3 => {
                let end = (at + self.below(64)).min(input.len());
                let piece = input[at..end].to_vec();
                let to = self.below(input.len() + 1);
                input.splice(to..to, piece);
            }
            4 => {
                let other = self.below(seeds.len());
                let other = seeds.get(other).map_or(&[][..], Vec::as_slice);
                let from = self.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            5 => {
                let lines: Vec<&[u8]> = input.split_inclusive(|&byte| byte == b'\n').collect();
                let (one, two) = (self.below(lines.len()), self.below(lines.len()));
                let mut lines = lines;
                if !lines.is_empty() {
                    lines.swap(one, two);
                }
                *input = lines.concat();
            }
            _ => {
                let word = self.below(words.len());
                let word = words.get(word).copied().unwrap_or_default();
                let end = if self.below(2) == 0 { at } else { (at + word.len()).min(input.len()) };
                input.splice(at..end, word.iter().copied());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, Mutator};

    #[test]
    fn equal_seeds_make_equal_inputs_and_others_do_not() {
        let seeds = [b"first line\nsecond line\n".to_vec(), b"other".to_vec()];
        let make = |seed| {
            let mut mutator = Mutator::new(seed);
            (0..100).map(|_| mutator.input(&seeds, &[b"word"])).collect::<Vec<_>>()
        };
        assert_eq!(make(7), make(7));
        assert_ne!(make(7), make(8));
        let all = make(7);
        assert!(all.iter().any(|input| input.windows(4).any(|window| window == b"word")));
        assert!(all.iter().all(|input| input.len() <= LONGEST));
    }

    #[test]
    fn nothing_to_start_from_is_no_trouble() {
        let mut mutator = Mutator::new(0);
        for _ in 0..100 {
            mutator.input(&[Vec::new()], &[]);
        }
    }
}
