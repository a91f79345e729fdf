/** The JSON of an object that often comes many times in a row: a policy, an error. A cache only: equal objects have equal texts. */
export class LastText {
  #object: object | null = null;
  #text = '';

  of(object: object): string {
    if (object !== this.#object) {
      this.#text = JSON.stringify(object);
      this.#object = object;
    }
    return this.#text;
  }
}
