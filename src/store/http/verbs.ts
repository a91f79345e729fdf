/** Where the server has them. */
export const STORE_PATH = '/api/v1/store';
/** Beside the verbs: what `onWork` and `onJobs` tell, as Server-Sent Events. */
export const HINTS = 'hints';
/** Beside the verbs: what the store of the server is. */
export const ABOUT = 'about';

export interface AboutStore {
  readonly kind: string;
  readonly pushes: boolean;
  /** Of Mulligan, as the server runs it. */
  readonly version: string;
}
