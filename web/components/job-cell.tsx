import type { VNode } from 'preact';
import { linkTo } from '../app/router.ts';
import { short } from './format.ts';

const LONGEST = 240;

/** A job in a list, with what there is to say of it below its name. */
export function JobCell({
  id,
  name,
  detail,
}: {
  readonly id: string;
  readonly name: string;
  readonly detail: string;
}): VNode {
  return (
    <>
      <a href={linkTo(['jobs', id])}>
        <bdi>{name}</bdi>
      </a>
      <div class="muted clip">
        <bdi>{short(detail, LONGEST)}</bdi>
      </div>
    </>
  );
}
