//! `h5i receipt verify`

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use h5i_export::{
    Applied, Base, BundleIndex, Verified, VerifyError, verify_bundle, verify_receipt,
};
use serde_json::json;

use super::Answer;
use crate::args::VerifyArgs;
use crate::caller::Caller;
use crate::failure::{Failure, Kind, objects_failure};
use crate::path_error::{Action, PathError};
use crate::shown::Shown;
use crate::store::{ObjectsKey, names};

const NAME_A_BUNDLE: &str = "name a directory that h5i box export made, or the receipt.json of one";

pub(super) fn verify(caller: &Caller, args: &VerifyArgs) -> Result<Answer, Failure> {
    let directory = caller.directory.join(&args.bundle);
    if std::fs::metadata(&directory).is_ok_and(|found| found.is_file()) {
        return alone(&directory);
    }
    let scratch = caller.scratch();
    let mut verified = verify_bundle(&directory, &scratch, None).map_err(|e| mismatch(&e))?;
    if let Some(base) = base_of(caller, &verified.index)? {
        verified.apply_to(&base, &scratch).map_err(|e| mismatch(&e))?;
    }
    answer(&verified)
}

/// A receipt without its bundle.
fn alone(path: &Path) -> Result<Answer, Failure> {
    let file = File::open(path).map_err(PathError::at(Action::Open, path))?;
    let mut source = BufReader::new(file);
    let begin = source.fill_buf().map_err(PathError::at(Action::Read, path))?;
    if !begin.trim_ascii_start().starts_with(b"{") {
        let message = format!("`{}` is neither a bundle nor a receipt", Shown::path(path));
        return Err(Failure::told(Kind::Usage, message).hint(NAME_A_BUNDLE));
    }
    let receipt = verify_receipt(source, |_| ()).map_err(|e| mismatch(&e))?;
    let records = receipt.head.records;
    let name = Shown::text(&receipt.name).to_string();
    let text = format!(
        "whole    receipt of box {name}\nrecords  {records}, the chain holds\npatch    not looked at\n"
    );
    let data = json!({
        "name": receipt.name,
        "bundle": null,
        "tree": receipt.tree,
        "records": records,
        "applied": false,
    });
    Answer::new(data, text)
}

fn answer(verified: &Verified) -> Result<Answer, Failure> {
    let applied = match verified.applied {
        Applied::Yes => "the patch, applied to the base, gives the named tree",
        _ => "the base's objects are not here, so the patch was not applied",
    };
    let records = verified.receipt.head.records;
    let name = Shown::text(&verified.index.name).to_string();
    let text = format!(
        "whole    box {name}, bundle {}\nrecords  {records}, the chain holds\npatch    {applied}\n",
        verified.bundle
    );
    let data = json!({
        "name": verified.index.name,
        "bundle": verified.bundle.to_string(),
        "tree": verified.index.tree,
        "records": records,
        "applied": verified.applied == Applied::Yes,
    });
    Answer::new(data, text)
}

/// The base in h5i's own objects, while a box of the same base keeps them.
fn base_of(caller: &Caller, index: &BundleIndex) -> Result<Option<Base>, Failure> {
    let Some(commit) = &index.base else { return Ok(None) };
    let (Ok(id), Ok(tree)) = (git2::Oid::from_str(commit), git2::Oid::from_str(&index.base_tree))
    else {
        return Ok(None);
    };
    for name in names(&caller.store.objects_dir())? {
        let Ok(key) = ObjectsKey::try_from(name) else { continue };
        if key.as_str().starts_with(commit.as_str()) {
            let objects = caller.store.objects_path(&key).join("objects");
            return Ok(Some(Base::commit(objects, id, tree)));
        }
    }
    Ok(None)
}

pub(crate) fn mismatch(error: &VerifyError) -> Failure {
    if let VerifyError::Store(store) = error
        && let Some(failure) = objects_failure(error, store)
    {
        return failure;
    }
    let kind = match error {
        VerifyError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            Kind::NotFound
        }
        VerifyError::Io { .. } => Kind::Io,
        _ => Kind::Corrupt,
    };
    let failure = Failure::new(kind, error);
    match kind {
        Kind::Corrupt => failure.hint("do not apply it; export the box again"),
        Kind::NotFound => failure.hint(NAME_A_BUNDLE),
        _ => failure.hint("see that you may read it"),
    }
}
