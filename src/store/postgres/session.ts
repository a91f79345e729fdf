import { Turns } from '../turns.ts';
import { Asides } from './asides.ts';
import { Candidates } from './candidates.ts';
import type { Database } from './connection/database.ts';
import { GatedPartitions } from './gated-partitions.ts';
import { JobTypes } from './job-types.ts';
import { Leases } from './leases.ts';
import { Partitions } from './partitions.ts';
import { Pruned } from './scan/pruned.ts';
import { ScanCursors } from './scan/scan-cursor.ts';
import { Workers } from './workers.ts';

/** One queue and what this process remembers of it between statements. The verbs' functions all take one. */
export class Session {
  readonly db: Database;
  readonly workers: Workers;
  readonly jobTypes: JobTypes;
  readonly candidates: Candidates;
  readonly asides: Asides;
  readonly partitions: Partitions;
  readonly cursors: ScanCursors;
  readonly leases: Leases;
  readonly pruned: Pruned;
  readonly gatedPartitions: GatedPartitions;
  /** Of lines. */
  readonly turns: Turns = new Turns();
  /** The last gate that pruning has looked at: when it was heard of, kind and name. */
  prunedGate: [heardAt: number, kind: string, name: string] = [0, '', ''];
  /** The last search for expired leases, for the next one to wait for. */
  lastSearch: Promise<unknown> = Promise.resolve();
  /** When the last of them that did not have to wait was made, in store time. */
  lookedAt: number | null = null;
  /** Of the tables whose numbers are cached here. */
  readonly identity: string;

  constructor(db: Database) {
    this.db = db;
    this.identity = db.identity;
    this.workers = new Workers(db);
    this.jobTypes = new JobTypes(db);
    this.candidates = new Candidates();
    this.asides = new Asides();
    this.partitions = new Partitions(db, (partition) => {
      this.candidates.add(partition);
      if (partition.under !== null) this.asides.add(partition.under);
    });
    this.cursors = new ScanCursors(db);
    this.leases = new Leases();
    this.pruned = new Pruned(db.clock);
    this.gatedPartitions = new GatedPartitions();
  }
}
