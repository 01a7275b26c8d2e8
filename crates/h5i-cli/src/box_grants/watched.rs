//! Credentials whose values no record may have.

use std::sync::{Arc, Mutex, PoisonError};

use h5i_broker::{Credential, CredentialError, Credentials};

use crate::receipt_log::Recorder;

/// Tells the recorder each value that its source gives, before anybody uses it.
pub(super) struct Watched<C> {
    grant: String,
    source: C,
    recorder: Arc<Recorder>,
    last: Mutex<Option<Arc<Credential>>>,
}

impl<C: Credentials> Watched<C> {
    pub(super) fn new(grant: &str, source: C, recorder: &Arc<Recorder>) -> Self {
        let (grant, recorder) = (grant.to_owned(), Arc::clone(recorder));
        Self { grant, source, recorder, last: Mutex::default() }
    }

    fn tell(&self, credential: &Arc<Credential>) -> Result<(), CredentialError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref().is_some_and(|last| Arc::ptr_eq(last, credential)) {
            return Ok(());
        }
        self.recorder.hides(&self.grant, &credential.secrets).map_err(|error| {
            let why = format!("it could not be kept out of the record: {error}");
            CredentialError::Source { source_name: self.grant.clone(), why }
        })?;
        *last = Some(Arc::clone(credential));
        Ok(())
    }
}

impl<C: Credentials> Credentials for Watched<C> {
    fn current(&self) -> Result<Arc<Credential>, CredentialError> {
        let credential = self.source.current()?;
        self.tell(&credential)?;
        Ok(credential)
    }

    fn renewed(&self, used: &Credential) -> Result<Option<Arc<Credential>>, CredentialError> {
        let renewed = self.source.renewed(used)?;
        renewed.iter().try_for_each(|credential| self.tell(credential))?;
        Ok(renewed)
    }
}
