/*
 * Every number of the gates, with its reason. docs/decisions/034-gate-constants.md says what was measured.
 */

const SECOND_MS = 1_000;
const MINUTE_MS: number = 60 * SECOND_MS;
export const HOUR_MS: number = 60 * MINUTE_MS;
const DAY_MS: number = 24 * HOUR_MS;

// Window
/** As long as a worker waits before it reports signs of life, so one bucket holds a report of every busy worker. */
export const BUCKET_MS: number = 5 * SECOND_MS;
/** 30 s in all: long enough for a share, short enough to see an outage within a minute. */
export const BUCKETS = 6;
export const WINDOW_MS: number = BUCKET_MS * BUCKETS;
/** Two halves of 5 min make the 10 min over which traffic is called slow. */
export const SLOW_SPAN_MS: number = 5 * MINUTE_MS;

/** A streak may have pauses as long as the traffic that is called slow. */
export const STREAK_KEPT_MS: number = 2 * SLOW_SPAN_MS;

// Trip
/** Enough where failures are rare: at 10% errors and 60 calls/s chance makes such a streak once in years. */
export const FAST_STREAK = 10;
/** Where failures are usual, a streak must be so long that chance makes one in 10 hours: 12 at 30% errors and 60 calls/s. */
export const FAST_CHANCES_PER_HOUR = 0.1;
/** From there on the ratio rule is quicker. */
export const FAST_LONGEST_STREAK = 30;
/** A few jobs that always fail must not trip a gate by being retried. */
export const DISTINCT_JOBS = 5;
export const RATIO_FAILURES = 10;
/** At half, waiting loses less than trying. */
export const RATIO_SHARE = 0.5;
/** In standard deviations above half: at one call a second and 40% errors, chance trips 13 times an hour with 1, once with 2. */
export const RATIO_DEVIATIONS = 2;
/** Fewer runs than this in 10 min is slow traffic: a window of 30 s holds too little to judge by. */
export const SLOW_RUNS = 50;
export const SLOW_STREAK = 5;
export const SLOW_JOBS = 3;
/** One or two jobs alone: no more failures than the shortest policy has attempts that retries at all. */
export const LONE_STREAK = 2;
/** A blip of less than 10 s is what retries are for. */
export const SLOW_LASTING_MS: number = 10 * SECOND_MS;

// One bad worker
/** The same odds as FAST_STREAK, for one worker's own runs. */
export const SUSPECT_STREAK = 10;
/** One call a minute of a worker that fails alone costs nothing. */
export const SUSPECT_LONGEST_MS: number = MINUTE_MS;
/** More failing workers than this at once is no case of one bad worker. */
export const SUSPECTS_KEPT = 8;
/** A worker that was not heard of for so long is forgotten. */
export const SUSPECT_FORGOTTEN_MS: number = 10 * MINUTE_MS;

// Probe
export const PROBE_FIRST_MS: number = 2 * SECOND_MS;
/** A dependency that was down for D is found within D/2 of its return; doubling needs up to D, and saves few calls. */
export const PROBE_GROWTH = 1.5;
/** A named service that is back is found within 20 s, for 240 calls an hour. */
export const PROBE_LONGEST_MS: number = 20 * SECOND_MS;
/** 100,000 dead endpoints at one probe in 20 s would be 5,000 calls/s; at 15 min they are 111/s. */
export const PROBE_LONGEST_KEYED_MS: number = 15 * MINUTE_MS;
/** Of the time since a keyed gate opened: an endpoint that was down for D waits for its next probe for D/4 at most, or 20 s. */
export const PROBE_LONGEST_KEYED_SHARE = 0.25;
/** One success may be luck; three in a row at 50% errors are 1 in 8. */
export const PROBES_ALIVE = 3;
/** A probe that has not reported by then frees its slot, whatever became of it. Its report still counts. */
export const PROBE_SLOT_MS: number = 35 * SECOND_MS;
/** So long the worker whose probe failed leaves the next one to others; they look for work once a second. */
export const PROBE_OTHERS_FIRST_MS: number = 3 * SECOND_MS;
/** After a probe that proved nothing (snoozed, released, crashed), so that one job cannot make probes spin. */
export const PROBE_AGAIN_MS: number = SECOND_MS;
/** Jobs that failed as probes: few enough for 64 bits to tell them from others. */
export const PROBES_REMEMBERED = 8;
/** All probes of one parent's children together. */
export const PARENT_PROBES_PER_SECOND = 10;
/** Ten at once: keys that went down together are due together, and a key that must wait for the others is late. */
export const PARENT_PROBES_BURST_MS = 900;
/** After this long without a report, what tripped the gate is no news any more. */
export const FORGET_OPEN_MS: number = DAY_MS;
/** Open for so long, a gate needs a person (Svix disables an endpoint then; a gate only says so). */
export const DORMANT_MS: number = 5 * DAY_MS;

// Ramp
/** No gate is slower than one start a second: below that, waiting costs more than calls. */
export const FLOOR_RATE = 1;
/** Traffic of 15 s, measured up to 10 s later, proves a peak. From less, a ramp would take its ceiling from a rate that was only beginning. */
export const PEAK_PARTS = 3;
/** A peak of a day ago proves half as much. */
export const PEAK_HALF_LIFE_MS: number = DAY_MS;
export const RAMP_START_SHARE = 0.05;
export const RAMP_STEP_MS: number = 2 * SECOND_MS;
/** Outcomes of longer runs are not waited for: hours of ramp would be worse than a step too early. */
export const RAMP_LONGEST_STEP_MS: number = MINUTE_MS;
export const RAMP_STEP_OUTCOMES = 10;
export const RAMP_GROWTH = 2;
export const RAMP_GROWTH_ABOVE_PEAK = 0.1;
/** With the burst below, any 10 s stay within 1.5 times the proven peak. */
export const RAMP_CEILING = 1.4;
export const RAMP_BURST_MS: number = 500;
/** Starts are handed out in parts of 100 ms, or every claim would take one job. */
export const RAMP_BATCH_MS: number = 100;
/** More failures than this above the background are taken for overload. */
export const RAMP_TROUBLE_SHARE = 0.1;
/** And at least this many more, or chance would cut a slow ramp: one failure of ten is 10%. */
export const RAMP_TROUBLE_MARGIN = 2;
/** Where a dependency has 10% headroom, halving never drains a backlog; 0.8 drains it in 2.6 times the ideal time, 0.9 in 1.8. */
export const RAMP_CUT = 0.9;
export const RAMP_CUBIC_MS: number = 30 * SECOND_MS;
/** When half of a step failed, 0.9 is too little: goodput may already be gone. */
export const RAMP_CUT_HALF_FAILED = 0.5;
/** A streak of 5 at 1/s, one more per 3.3-fold rate: at 30% errors about 10 an hour by chance, and a ramp lasts minutes. */
export const RAMP_STREAK = 5;
export const RAMP_STREAK_GROWTH = 1.2;
/** With a known background of 30% a streak must be 1.6 times as long to be as unlikely. */
export const RAMP_STREAK_BACKGROUND = 2;
/** 0.9 four times is 0.66: a rate so much lower changes the failures of every overload. */
export const RAMP_CUTS_BEFORE_LEARNING = 4;
/** Four cuts leave at most half of the failures of an overload; with more than this left they have not helped. */
export const RAMP_CUT_HELPED = 0.6;
/** The background never hides a dependency that fails half of the time. */
export const RAMP_LARGEST_BACKGROUND = 0.35;
/** The rate has not been the limit for so long: the gate closes. */
export const RAMP_UNUSED_MS: number = 10 * SECOND_MS;
/** At the ceiling and healthy for so long, the load has grown for good. */
export const RAMP_CREEP_AFTER_MS: number = 5 * MINUTE_MS;
export const RAMP_CREEP_PER_MINUTE = 0.2;
/** A ramp that failed less than this ago tells where the next one may begin. */
export const RAMP_REMEMBERED_MS: number = 5 * MINUTE_MS;
/** No stored rate is believed beyond this. */
export const LARGEST_RATE = 1_000_000;

// Hold
/** A hostile or broken header must not stall a resource for longer. */
export const HOLD_LONGEST_MS: number = HOUR_MS;
/** After a Retry-After the rate resumes at this part of what was measured (AWS's adaptive mode). */
export const HOLD_RESUME_SHARE = 0.7;

/** Jobs that were asked to wait: few enough for 64 bits to tell them from others, and for how long they are remembered. */
export const ASKED_REMEMBERED = 8;
export const ASKED_KEPT_MS: number = 10 * MINUTE_MS;
/** So often a job may be asked to wait by itself before that counts: a quota that is shared asks the same job twice by chance. */
export const ASKED_UNCOUNTED = 3;

/** While fewer than this part of the window ask to be left alone, a job that asks waits alone. */
export const ASKED_SHARE = 0.1;
/** So many in a row are no longer few, whatever the window says: at a tenth, chance makes such a row once in 100,000 asks. */
export const ASKED_IN_A_ROW = 5;

// Retry budget
export const BUDGET_PER_SUCCESS = 0.2;
/** Retries never stop altogether: at least 1/s, or this share of the peak. */
export const BUDGET_FLOOR_SHARE = 0.1;
/** What is saved up is worth 10 s. */
export const BUDGET_SPAN_MS: number = 10 * SECOND_MS;

/** Below this part of what can be saved up, each retry is charged when it starts; above, when it has ended. */
export const BUDGET_LOW_SHARE = 0.5;

// Refunds
/** Trips whose windows are remembered for jobs with a long backoff. */
export const COVERED_KEPT = 8;
/** A healthy ramp that lasts (the rate is all that the dependency can do) refunds no longer than this. */
export const RAMP_REFUNDS_MS: number = 5 * MINUTE_MS;

// Parent
export const PARENT_SPAN_MS: number = MINUTE_MS;
/** How often the rows of its children are counted. */
export const PARENT_COUNT_MS: number = SECOND_MS;
export const PARENT_CHILDREN = 20;
/** So many endpoints do not die within one minute: our own network has. */
export const PARENT_SHARE = 0.3;

// Soft gates
export const MAX_OUTAGE_MS: number = DAY_MS;
/** A 500 may be the fault of one input, and two inputs may share it; of three different jobs it says something on the service. */
export const WEAK_JOBS = 3;
/** So long a job is given back its attempts on the word of fewer: longer than most outages, and some 70 calls. */
export const WEAK_OUTAGE_MS: number = HOUR_MS;
/** An outage is over below this share; trips need RATIO_SHARE, so the verdict does not flutter between the two. */
export const SOFT_OVER_SHARE = 0.3;

// Forgetting
/** Quiet for two windows, a closed gate needs no row. */
export const QUIET_MS: number = 2 * WINDOW_MS;
/** A peak worth remembering (above twice the floor) keeps its row for a day. */
export const PEAK_KEPT_MS: number = DAY_MS;
