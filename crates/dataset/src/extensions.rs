//! Extensions that tell nothing of their owner keep their names.

use crate::tree::Series;

/// Extensions of widely used programs, by what is in such files.
const KNOWN: &str = "\
    7z aac asm avi bash bat bin bmp bz2 c cc cfg class cmake conf config cpp cs css csv dat db deb dll doc docx eml \
    eot exe f90 flac gif git go gz h hh hpp htm html ico img in inc info ini ipynb iso jar java jpeg jpg js json jsx \
    ko less lock log lua m m4 md mo mk mp3 mp4 mpeg mpg o odp ods odt ogg old otf patch pdf php pl plist pm png po \
    pot ppt pptx ps psd py pyc pyi qcow2 r rb rpm rs rst rtf s scss sh so sql sqlite svg swf swp sys tar tex tgz tif \
    tiff tmp toml ts tsv tsx ttf txt vb vdi vhd vmdk wav webm webp wmv woff woff2 xls xlsx xml xz y yaml yml zip zst";

/// Whether an extension tells nothing of its owner.
pub(crate) fn is_known(extension: &str) -> bool {
    KNOWN.split_ascii_whitespace().any(|known| known == extension)
}

/// Extensions as a profile tells them.
pub(crate) struct Told {
    pub names: Vec<String>,
    /// The place in `names` of each extension of the series.
    pub numbers: Vec<u32>,
}

/// Known extensions by name, all others by a number in the order of how many files have them.
pub(crate) fn anonymous(series: &Series) -> Told {
    let mut files = vec![0u64; series.names.extensions.len()];
    for extension in series.trees.iter().flat_map(|tree| &tree.files.extension) {
        files[usize::from(*extension)] += 1;
    }
    let mut order: Vec<usize> = (1..files.len()).filter(|i| files[*i] > 0).collect();
    // Neither the order nor what is equal may tell of the names.
    order.sort_by_key(|i| (std::cmp::Reverse(files[*i]), *i));
    let (mut names, mut numbers) = (vec![String::new()], vec![0; files.len()]);
    for i in order {
        let own = String::from_utf8_lossy(&series.names.extensions[i]).into_owned();
        numbers[i] = names.len() as u32;
        names.push(if is_known(&own) { own } else { format!("x{}", names.len()) });
    }
    Told { names, numbers }
}
