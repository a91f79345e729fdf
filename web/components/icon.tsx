import type { VNode } from 'preact';

/** Drawn on 16 by 16, with the colour of the text around. */
const paths = {
  overview: 'M2 13h12M4 11V8m4 3V4m4 7V6',
  failures: 'M8 2.5 14.5 13.5h-13zM8 6.5v3.5m0 1.6v.4',
  jobs: 'M2.5 4h11M2.5 8h11M2.5 12h7',
  queues: 'M2.5 3.5h11v3h-11zM2.5 9.5h11v3h-11z',
  gates: 'M3 14V5a5 5 0 0 1 10 0v9M3 8.5h10M8 8.5V14',
  limits: 'M2.5 11a5.5 5.5 0 1 1 11 0M8 11l2.5-4',
  schedules: 'M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM8 5v3.2l2.2 1.4',
  workers: 'M4.5 4.5h7v7h-7zM6.5 2v2.5m3-2.5v2.5m-3 7V14m3-2.5V14M2 6.5h2.5M2 9.5h2.5m7-3H14m-2.5 3H14',
  audit: 'M4 2.5h6l2.5 2.5v8.5H4zM6 7h4.5M6 9.5h4.5',
  'policy-lab': 'M6.5 2.5h3M7 2.5v4L3.5 13h9L9 6.5v-4M5.3 10h5.4',
  live: 'M8 5.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5zM3.8 3.8a6 6 0 0 0 0 8.4m8.4-8.4a6 6 0 0 1 0 8.4',
  polling: 'M13 8a5 5 0 1 1-1.5-3.5M13 2.5v3h-3',
  scheduled: 'M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM8 5v3.2l2.2 1.4',
  ready: 'M8 3a5 5 0 1 1 0 10A5 5 0 0 1 8 3z',
  retrying: 'M13 8a5 5 0 1 1-1.5-3.5M13 2.5v3h-3',
  running: 'M5 3.5v9l7.5-4.5z',
  completed: 'M3 8.5l3.3 3.3L13 5',
  dead: 'M4 4l8 8m0-8l-8 8',
  cancelled: 'M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM4.2 4.2l7.6 7.6',
  open: 'M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM5 8h6',
  ramp: 'M2.5 12.5 12 4m-4.5 0H12v4.5',
  pin: 'M6 2.5h4l-.5 4 2 2.5h-7l2-2.5zM8 9v4.5',
  paused: 'M5.5 3.5v9m5-9v9',
  crashed: 'M9 1.5 3.5 9H8l-1 5.5L12.5 7H8z',
  snoozed: 'M5 4h6l-6 8h6',
  released: 'M6 3.5 2.5 7 6 10.5M2.5 7h7a4 4 0 0 1 0 6.5H7',
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { readonly name: IconName }): VNode {
  return (
    <svg
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.6"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={paths[name]} />
    </svg>
  );
}
